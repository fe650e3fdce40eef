// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Worlds of tests are written as one word for each pod, from number 0 up and with a slash between them: its revision and what is special about it.
//
//	v1    is ready and available
//	v1+   is ready, and available half a minute from now
//	v1~   is not ready for ten seconds
//	v1!   is not ready for an hour
//	v1^   has new images and waits for its kubelet
//	v1x   has failed, an hour after it was made
//	v1X   has failed as soon as it was made
//	v1-   is being deleted
//	v1=   is being deleted, for an hour
//	.     does not exist
//
// Revisions v1, v2 and v3 differ in their image. With a letter after the number, as in v2b, they differ in an annotation
// as well.
func parseWorld(t *testing.T, s settings, text string) world {
	t.Helper()
	w := world{settings: s, revisions: map[string]*revision{}, now: noon}
	for ordinal, word := range strings.Split(text, "/") {
		if word == "." || word == "" {
			continue
		}
		hash, state := strings.TrimRight(word, "+~!^xX-="), word[len(strings.TrimRight(word, "+~!^xX-=")):]
		if hash != "gone" {
			w.revisions[hash] = newRevision(hash)
		}
		w.members = append(w.members, memberOf(s.name, newPod(t, s.name, ordinal, hash, state)))
	}
	return w
}

func newRevision(hash string) *revision {
	number := hash[1:2]
	template := &sharedv1.PodTemplate{Spec: sharedv1.PodSpec{Containers: []sharedv1.Container{{Name: "main", Image: "image:" + number}}}}
	if letter := hash[2:]; letter != "" {
		template.Metadata = &sharedv1.PodMetadata{Annotations: map[string]string{"letter": letter}}
	}
	value, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	return &revision{hash: hash, template: template, object: &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash}, Revision: int64(value),
	}}
}

func newPod(t *testing.T, cluster string, ordinal int, hash, state string) *corev1.Pod {
	t.Helper()
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(cluster, ordinal), CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{labelRevision: hash, labelOrdinal: strconv.Itoa(ordinal)},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", ContainerID: "id-1"}},
		},
	}
	setReady := func(status corev1.ConditionStatus, since metav1.Time) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: since}}
	}
	setReady(corev1.ConditionTrue, ago(time.Hour))
	switch state {
	case "":
	case "+":
		setReady(corev1.ConditionTrue, ago(30*time.Second))
	case "~":
		setReady(corev1.ConditionFalse, ago(10*time.Second))
	case "!":
		setReady(corev1.ConditionFalse, ago(time.Hour))
	case "^":
		pod.ManagedFields = ownFieldsOf(ownsRenewal)
		pod.Annotations = map[string]string{annotationRenewal: `{"begun": "2026-01-01T11:59:55Z", "before": {"main": {"id": "id-1", "image": "old"}}}`}
	case "x":
		pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	case "X":
		pod.Status.Phase = corev1.PodFailed
		pod.CreationTimestamp = ago(time.Second)
	case "-":
		pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(5 * time.Second)}
	case "=":
		pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	default:
		t.Fatalf("there is no state %q", state)
	}
	return pod
}

// describePlan writes actions as people would: "create 3 from v2, delete 4 (scaled down)".
func describePlan(p plan) string {
	var parts []string
	for _, a := range p.actions {
		text := fmt.Sprintf("%s %d", a.verb, a.ordinal)
		if a.revision != nil {
			text += " to " + a.revision.hash
		}
		if a.why != "" {
			text += " (" + a.why + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}
