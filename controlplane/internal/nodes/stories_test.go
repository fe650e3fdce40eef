// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files from what the code does")

// epoch lies between two seconds, because real pods do not start on the second either.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 700_000_000, time.UTC)

// story is the life of one pod on its node, without a server.
type story struct {
	annotation string
	policy     corev1.RestartPolicy
	pod        func(*corev1.Pod) // makes the pod special
	changes    []change          // changes to the pod later
	until      time.Duration     // the story ends here
}

type change struct {
	at   time.Duration
	what string
	do   func(*corev1.Pod)
}

func annotate(value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations = map[string]string{Annotation: value} }
}

func setImage(image string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Image = image
		pod.Generation++
	}
}

var stories = map[string]story{
	"run": {},
	"run-with-init-container-and-sidecar": {pod: func(pod *corev1.Pod) {
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "setup", Image: "setup:1"},
			{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		}
	}},
	"run-with-resources": {pod: func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	}},
	"run-with-readiness-gate": {
		pod: func(pod *corev1.Pod) {
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/open"}}
		},
		changes: []change{{5 * time.Second, "the gate opens", func(pod *corev1.Pod) {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
				Type: "example.com/open", Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch),
			})
		}}},
	},
	"run-with-image-change": {
		pod:     func(pod *corev1.Pod) { addContainer(pod, "second") },
		changes: []change{{10 * time.Second, "image of app becomes app:2", setImage("app:2")}},
	},
	"run-with-image-change-and-policy-never": {
		policy:  corev1.RestartPolicyNever,
		changes: []change{{10 * time.Second, "image of app becomes app:2", setImage("app:2")}},
	},
	"run-until-its-deadline": {
		pod:   func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = new(int64(20)) },
		until: time.Minute,
	},
	"job":                        {policy: corev1.RestartPolicyNever, pod: ownedByJob},
	"job-told-to-run":            {annotation: "run", policy: corev1.RestartPolicyNever, pod: ownedByJob},
	"complete-with-policy-never": {annotation: "complete", policy: corev1.RestartPolicyNever},
	"complete-after-5s-with-policy-onfailure": {
		annotation: "complete,after=5s", policy: corev1.RestartPolicyOnFailure, until: 10 * time.Second,
		pod: func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "proxy", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
		},
	},
	"complete-with-policy-always": {annotation: "complete", until: 30 * time.Second},
	"exit-with-policy-never": {
		annotation: "exit=3", policy: corev1.RestartPolicyNever,
		pod: func(pod *corev1.Pod) { addContainer(pod, "second") },
	},
	"exit-with-policy-onfailure": {annotation: "exit=3", policy: corev1.RestartPolicyOnFailure, until: 40 * time.Second},
	"crash-loop":                 {annotation: "crash-loop", until: 12 * time.Minute},
	"crash-loop-after-5s-with-max-backoff-1s": {
		annotation: "crash-loop,after=5s,max-backoff=1s", until: 20 * time.Second,
	},
	"crash-loop-ends-with-its-annotation": {
		annotation: "crash-loop",
		changes:    []change{{5 * time.Second, "the annotation is removed", annotate("")}},
	},
	"crash-loop-with-image-change": {
		annotation: "crash-loop",
		changes:    []change{{5 * time.Second, "image of app becomes app:2", setImage("app:2")}},
	},
	"crash-loop-begins-in-a-running-pod": {
		changes: []change{{10 * time.Second, "annotated crash-loop", annotate("crash-loop")}},
		until:   15 * time.Second,
	},
	"image-pull-error": {annotation: "image-pull-error", until: 90 * time.Second},
	"image-pull-error-ends-with-its-annotation": {
		annotation: "image-pull-error",
		changes:    []change{{5 * time.Second, "the annotation is removed", annotate("")}},
	},
	"image-pull-error-of-a-changed-image": {
		changes: []change{
			{10 * time.Second, "annotated image-pull-error, which means nothing to a running container", annotate("image-pull-error")},
			{20 * time.Second, "image of app becomes app:2", setImage("app:2")},
		},
		until: 25 * time.Second,
	},
	"never-ready": {annotation: "never-ready"},
	"never-ready-ends-with-its-annotation": {
		annotation: "never-ready",
		changes:    []change{{5 * time.Second, "the annotation is removed", annotate("")}},
	},
	"never-ready-begins-in-a-ready-pod": {
		changes: []change{{5 * time.Second, "annotated never-ready", annotate("never-ready")}},
	},
	"ready-after-30s": {annotation: "ready-after=30s", until: time.Minute},
	"node-lost":       {annotation: "node-lost"},
}

func ownedByJob(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", Controller: new(true)}}
}

func addContainer(pod *corev1.Pod, name string) {
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: name + ":1"})
}

// TestStories tells the life of a pod per behaviour, one line a report, and ends with its full status.
func TestStories(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			golden(t, name, s.tell(t))
		})
	}
}

func (s story) tell(t *testing.T) string {
	t.Helper()
	pod := boundPod(s.annotation, s.policy)
	if s.pod != nil {
		s.pod(pod)
	}
	var told strings.Builder
	now, changes := epoch, s.changes
	for _, later := range changes {
		s.until = max(s.until, later.at)
	}
	for range 200 {
		behaviour, err := behaviourOf(pod)
		if err != nil {
			t.Fatal(err)
		}
		var result report
		done := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !done {
			result = observe(pod, behaviour, place{hostIP: "10.64.0.1", podIP: "10.128.0.1"}, now)
		}
		if !done && !apiequality.Semantic.DeepEqual(pod.Status, result.status) {
			pod.Status = stored(t, result.status)
			fmt.Fprintf(&told, "%s %s\n", age(now), summary(pod))
			for _, e := range result.events {
				fmt.Fprintf(&told, "        event %s %s: %s\n", e.kind, e.reason, e.message)
			}
			continue // a write is followed by another look at once
		}
		next := result.wake
		if len(changes) > 0 && (next.IsZero() || epoch.Add(changes[0].at).Before(next)) {
			now = epoch.Add(changes[0].at)
			fmt.Fprintf(&told, "%s %s\n", age(now), changes[0].what)
			changes[0].do(pod)
			changes = changes[1:]
			continue
		}
		if next.IsZero() || next.After(epoch.Add(s.until)) {
			data, err := yaml.Marshal(pod.Status)
			if err != nil {
				t.Fatal(err)
			}
			return told.String() + "---\n" + withoutTimes(string(data))
		}
		if !next.After(now) {
			t.Fatalf("asks to look again at %s, which is not after %s", age(next), age(now))
		}
		now = next
	}
	t.Fatalf("no end after:\n%s", told.String())
	return ""
}

func boundPod(annotation string, policy corev1.RestartPolicy) *corev1.Pod {
	if policy == "" {
		policy = corev1.RestartPolicyAlways
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "0000", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName: "node-0", RestartPolicy: policy,
			Containers: []corev1.Container{{Name: "app", Image: "app:1"}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(epoch.Truncate(time.Second)),
			}},
		},
	}
	if annotation != "" {
		annotate(annotation)(pod)
	}
	return pod
}

// stored is what is left of a status after a visit to the API server: whole seconds.
func stored(t *testing.T, status corev1.PodStatus) corev1.PodStatus {
	t.Helper()
	data, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	var result corev1.PodStatus
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// summary is one line about a pod, much as kubectl would put it.
func summary(pod *corev1.Pod) string {
	parts := []string{string(pod.Status.Phase)}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, container := range list {
			parts = append(parts, fmt.Sprintf("| %s %s", container.Name, stateOf(container)))
		}
	}
	parts = append(parts, "|")
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.PodScheduled {
			parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s=%s/%s", condition.Type, condition.Status, condition.Reason), "/"))
		}
	}
	return strings.Join(parts, " ")
}

func stateOf(container corev1.ContainerStatus) string {
	var state string
	switch {
	case container.State.Running != nil:
		state = "running"
	case container.State.Terminated != nil:
		state = fmt.Sprintf("terminated %s %d", container.State.Terminated.Reason, container.State.Terminated.ExitCode)
	case container.State.Waiting != nil:
		state = "waiting " + container.State.Waiting.Reason
	}
	if container.Ready {
		state += " ready"
	}
	state += fmt.Sprintf(" restarts=%d", container.RestartCount)
	if last := container.LastTerminationState.Terminated; last != nil {
		state += fmt.Sprintf(" last=%s/%d", last.Reason, last.ExitCode)
	}
	return state
}

func age(at time.Time) string {
	return fmt.Sprintf("T+%-6s", at.Sub(epoch).Round(100*time.Millisecond))
}

var timestamp = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"`)

// withoutTimes replaces timestamps by their distance from the beginning.
func withoutTimes(text string) string {
	return timestamp.ReplaceAllStringFunc(text, func(quoted string) string {
		at, _ := time.Parse(`"`+time.RFC3339+`"`, quoted)
		return "T+" + at.Sub(epoch.Truncate(time.Second)).String()
	})
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if string(want) != got {
		t.Errorf("%s differs; run the test with -update and look at the change.\n--- want\n%s\n--- got\n%s", file, want, got)
	}
}
