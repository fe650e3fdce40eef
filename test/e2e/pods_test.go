// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/opdock/opdock/internal/testenv"
)

func pod(behaviour string, policy corev1.RestartPolicy) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Annotations: behaving(behaviour)},
		Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{container("app:1")}},
	}
}

func (w *world) createPod(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	return must(w.CoreV1().Pods(w.namespace).Create(t.Context(), p, metav1.CreateOptions{}))(t)
}

func (w *world) startPod(t *testing.T, behaviour string, policy corev1.RestartPolicy) *corev1.Pod {
	t.Helper()
	return w.awaitReady(t, w.createPod(t, pod(behaviour, policy)).Name)
}

func (w *world) awaitReady(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	return w.awaitPod(t, name, "is ready", func(p *corev1.Pod) error {
		if !isReady(p) {
			return fmt.Errorf("it is: %s", tell(p))
		}
		return nil
	})
}

func (w *world) awaitPod(t *testing.T, name, what string, check func(*corev1.Pod) error) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	testenv.Eventually(t, "pod "+name+" "+what, func() (err error) {
		if found, err = w.CoreV1().Pods(w.namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		return check(found)
	})
	return found
}

// annotatePod changes the behaviour of a pod; the empty one removes the annotation.
func (w *world) annotatePod(t *testing.T, name, behaviour string) {
	t.Helper()
	must(w.CoreV1().Pods(w.namespace).Patch(t.Context(), name, types.MergePatchType, annotationPatch(t, behaviour), metav1.PatchOptions{}))(t)
}

func annotationPatch(t *testing.T, behaviour string) []byte {
	t.Helper()
	var value any // null removes it
	if behaviour != "" {
		value = behaviour
	}
	return must(json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{behaviourAnnotation: value}}}))(t)
}

// awaitEvent waits for an event of an object and returns the first.
func (w *world) awaitEvent(t *testing.T, about, reason string) corev1.Event {
	t.Helper()
	var first corev1.Event
	testenv.Eventually(t, "an event tells of "+reason, func() error {
		events, err := w.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{
			FieldSelector: fields.Set{"involvedObject.name": about, "reason": reason}.String(),
		})
		if err != nil {
			return err
		}
		if len(events.Items) == 0 {
			return errors.New("there is none")
		}
		first = events.Items[0]
		return nil
	})
	return first
}

// tell puts into one line what a controller sees of a pod with one container.
func tell(p *corev1.Pod) string {
	words := []string{"no container"}
	if len(p.Status.ContainerStatuses) > 0 {
		status := p.Status.ContainerStatuses[0]
		words = []string{tellState(status.State)}
		if status.RestartCount > 0 {
			words = append(words, fmt.Sprintf("restart %d after %s", status.RestartCount, tellState(status.LastTerminationState)))
		}
	}
	switch ready := conditionOf(p, corev1.PodReady); {
	case ready.Status == corev1.ConditionTrue:
		words = append(words, "Ready")
	case ready.Reason != "":
		words = append(words, ready.Reason)
	}
	return fmt.Sprintf("%s: %s", p.Status.Phase, strings.Join(words, ", "))
}

func tellState(state corev1.ContainerState) string {
	switch {
	case state.Running != nil:
		return "running"
	case state.Terminated != nil:
		return fmt.Sprintf("%s %d", state.Terminated.Reason, state.Terminated.ExitCode)
	case state.Waiting != nil:
		return state.Waiting.Reason
	default:
		return "nothing"
	}
}

// tellConditions puts all conditions of a pod into one line.
func tellConditions(p *corev1.Pod) string {
	var words []string
	for _, kind := range []corev1.PodConditionType{
		corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		condition := conditionOf(p, kind)
		word := fmt.Sprintf("%s %s", kind, condition.Status)
		if condition.Reason != "" {
			word += " " + condition.Reason
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// follower watches one pod and remembers its story.
type follower struct {
	changes watch.Interface
	story   []string
	last    *corev1.Pod
}

// follow misses nothing that happens to the pod after the given version of it.
func (w *world) follow(t *testing.T, from *corev1.Pod) *follower {
	t.Helper()
	changes := must(w.CoreV1().Pods(w.namespace).Watch(t.Context(), metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", from.Name).String(), ResourceVersion: from.ResourceVersion,
	}))(t)
	t.Cleanup(changes.Stop)
	return &follower{changes: changes, last: from}
}

// expect waits until the pod was all this, in this order, and returns it as it was at last. What lies between,
// a status that was written twice for instance, does not matter.
func (f *follower) expect(t *testing.T, lines ...string) *corev1.Pod {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for _, line := range lines {
		for told := ""; told != line; {
			select {
			case change := <-f.changes.ResultChan():
				p, ok := change.Object.(*corev1.Pod)
				if !ok {
					t.Fatalf("the watch reports %+v after\n%s", change, strings.Join(f.story, "\n"))
				}
				told, f.last = tell(p), p
				if change.Type == watch.Deleted {
					told = "gone"
				}
				f.story = append(f.story, told)
			case <-deadline.C:
				t.Fatalf("the pod was never %q but\n%s", line, strings.Join(f.story, "\n"))
			}
		}
	}
	return f.last
}
