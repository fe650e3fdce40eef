// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
)

func TestOrdinalOf(t *testing.T) {
	for pod, want := range map[string]int{
		"web-0": 0, "web-12": 12, "web-01": -1, "web-": -1, "web--1": -1, "web": -1, "web-x-0": -1, "other-0": -1, "web-+1": -1,
	} {
		ordinal, ok := ordinalOf("web", pod)
		if !ok {
			ordinal = -1
		}
		if ordinal != want {
			t.Errorf("%s has number %d, not %d", pod, ordinal, want)
		}
	}
	if ordinal, ok := ordinalOf("web-1", "web-1-2"); !ok || ordinal != 2 {
		t.Errorf("web-1-2 has number %d, not 2", ordinal)
	}
}

// A pod goes through changes of its image as its kubelet sees them.
func TestRenewal(t *testing.T) {
	v1, v2, v3 := newRevision("v1"), newRevision("v2"), newRevision("v3")
	start := newPod(t, "web", 0, "v1", "")
	start.ManagedFields = ownFieldsOf(ownsRenewal)
	start.Spec.Containers[0].Image = "image:1"
	start.Spec.Containers = append(start.Spec.Containers, corev1.Container{Name: "injected", Image: "proxy"})
	restart := func(pod *corev1.Pod, id string) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Status.ContainerStatuses[0].ContainerID = id
		return pod
	}
	change := func(pod *corev1.Pod, from, to *revision) *corev1.Pod {
		t.Helper()
		changed, err := renewed(pod, changedImages(from, to, nil), to, noon)
		if err != nil {
			t.Fatal(err)
		}
		return changed
	}
	check := func(what string, pod *corev1.Pod, image string, ready bool) {
		t.Helper()
		if got := pod.Spec.Containers[0].Image; got != image {
			t.Errorf("%s: the image is %s, not %s", what, got, image)
		}
		if got := pod.Spec.Containers[1].Image; got != "proxy" {
			t.Errorf("%s: the image of a container that is not in the template has become %s", what, got)
		}
		if got := memberOf("web", pod).ready; got != ready {
			t.Errorf("%s: ready is %v", what, got)
		}
	}
	check("before", start, "image:1", true)
	changed := change(start, v1, v2)
	check("changed", changed, "image:2", false)
	check("restarted", restart(changed, "id-2"), "image:2", true)
	check("changed again before the kubelet looked", change(changed, v2, v3), "image:3", false)
	check("changed back before the kubelet looked", change(changed, v2, v1), "image:1", true)
	again := change(restart(changed, "id-2"), v2, v1)
	check("changed back after the restart", again, "image:1", false)
	check("restarted again", restart(again, "id-3"), "image:1", true)
	if hash := memberOf("web", again).hash; hash != "v1" {
		t.Errorf("the revision is %s", hash)
	}
	byHand := changed.DeepCopy()
	byHand.Spec.Containers[0].Image = "image:1"
	check("it is changed back before the kubelet acted", byHand, "image:1", true)
	spoilt := changed.DeepCopy()
	spoilt.Annotations[annotationRenewal] = "spoilt"
	check("the note is damaged", spoilt, "image:2", true)
	foreign := changed.DeepCopy()
	foreign.ManagedFields = append(ownFieldsOf(ownsLabel), fieldsOf("kubectl-annotate", ownsRenewal))
	check("the note is of another writer", foreign, "image:2", true)
}

func TestANewImageGetsTheFullTime(t *testing.T) {
	pod := newPod(t, "web", 0, "v1", "!")
	pod.ManagedFields = ownFieldsOf(ownsRenewal)
	changed, err := renewed(pod, changedImages(newRevision("v1"), newRevision("v2"), nil), newRevision("v2"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if due := memberOf("web", changed).deadline(time.Minute, noon); !due.Equal(noon.Add(time.Minute)) {
		t.Errorf("the pod is replaced at %v", due)
	}
}

// The server records that the note is ours.
func TestOurNote(t *testing.T) {
	d := newDesk(t, "{podReplicas: 1, image: a}")
	d.settle()
	d.respec(func(spec *kubegroupv1.PodClusterSpec) { spec.Image = "b" })
	if _, _, err := d.pass(); err != nil || !memberOf("web", d.pod()).renewing {
		t.Errorf("no note is read (%v): %+v", err, d.pod().ObjectMeta)
	}
}

// A note of another writer does not make a PodCluster replace a pod that is well.
func TestANoteOfAnotherWriter(t *testing.T) {
	d := newDesk(t, "{podReplicas: 1, image: a, progressDeadlineSeconds: 1}")
	d.settle()
	uid := d.pod().UID
	d.edit(func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{annotationRenewal: `{"begun": "2026-01-01T11:00:00Z", "before": {"main": {"image": "other"}}}`}
	})
	d.settle()
	if got := d.pod().UID; got != uid {
		t.Errorf("the pod was replaced by %s", got)
	}
}

// Another writer cannot keep a pod that is not ready by its note, even under our name.
func TestANoteFromTheFuture(t *testing.T) {
	w := parseWorld(t, settings{name: "web", replicas: 1, maxUnavailable: 1, deadline: time.Minute}, "v1")
	w.current, w.update = w.revisions["v1"], w.revisions["v1"]
	pod := w.members[0].pod
	pod.ManagedFields = ownFieldsOf(ownsRenewal)
	pod.Annotations = map[string]string{annotationRenewal: `{"begun": "2099-01-01T00:00:00Z", "before": {"main": {"id": "id-1", "image": "evil"}}}`}
	w.members[0] = memberOf("web", pod)
	if got := describePlan(newPlan(w)); got != "delete 0 (it has not been ready for 1m0s)" {
		t.Errorf("the plan is %q", got)
	}
}

func TestWhichChangesOfPodsMatter(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*corev1.Pod)
		want   bool
	}{
		{"nothing", func(*corev1.Pod) {}, false},
		{"an annotation of another writer", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }, false},
		{"its address", func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }, false},
		{"a container, if no image was changed", func(p *corev1.Pod) { p.Status.ContainerStatuses[0].ContainerID = "id-2" }, false},
		{"readiness", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		{"since when it is ready", func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(time.Second)) }, true},
		{"its phase", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		{"a label", func(p *corev1.Pod) { p.Labels["a"] = "b" }, true},
		{"its owner", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, true},
		{"its deletion", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		{"a container that waits", func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		}, true},
	} {
		before := newPod(t, "web", 0, "v1", "")
		before.ManagedFields = ownFieldsOf(ownsLabel)
		after := before.DeepCopy()
		test.change(after)
		if got := matters(before, after); got != test.want {
			t.Errorf("%s: matters is %v", test.name, got)
		}
	}
	// What we own would show a change of our annotations, and a pod with cleared managed fields does not.
	before := newPod(t, "web", 0, "v1", "")
	after := before.DeepCopy()
	after.Annotations = map[string]string{"note": "theirs"}
	if !matters(before, after) {
		t.Error("an annotation of a pod with cleared managed fields does not matter")
	}
	before = newPod(t, "web", 0, "v1", "^")
	after = before.DeepCopy()
	after.Status.ContainerStatuses[0].ContainerID = "id-2"
	if !matters(before, after) {
		t.Error("a container that was started with its new image does not matter")
	}
}
