// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
)

// respec changes the spec as a user, and counts it.
func (d *desk) respec(change func(*kubegroupv1.PodClusterSpec)) {
	d.Helper()
	change(&d.cluster.Spec)
	d.cluster.Generation++
	if err := d.Update(d.Context(), d.cluster); err != nil {
		d.Fatal(err)
	}
}

// member returns a pod, or nil if there is none.
func (d *desk) member(name string) *corev1.Pod {
	d.Helper()
	pod := &corev1.Pod{}
	err := d.Get(d.Context(), client.ObjectKey{Namespace: d.cluster.Namespace, Name: name}, pod)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		d.Fatal(err)
	}
	return pod
}

// change changes a pod as another writer.
func (d *desk) change(name string, change func(*corev1.Pod)) *corev1.Pod {
	d.Helper()
	pod := d.member(name)
	before := pod.DeepCopy()
	change(pod)
	if err := d.Update(d.Context(), pod, client.FieldOwner("rival")); err != nil {
		d.Fatal(err)
	}
	return before
}

// While a PodCluster is suspended, a pod is hidden, and then there are to be fewer pods.
func TestASurplusPodThatIsHidden(t *testing.T) {
	for _, test := range []struct {
		name string
		hide func(*corev1.Pod)
		// restart is whether the manager was not running meanwhile.
		restart, stays bool
	}{
		{name: "without the label of the fleet", hide: func(p *corev1.Pod) { delete(p.Labels, flow.LabelManagedBy) }},
		{name: "without the label of the fleet, after a restart", hide: func(p *corev1.Pod) { delete(p.Labels, flow.LabelManagedBy) }, restart: true},
		{name: "without labels", hide: func(p *corev1.Pod) { p.Labels = nil }},
		{name: "without labels and owner", hide: func(p *corev1.Pod) { p.Labels, p.OwnerReferences = nil, nil }},
		{name: "in the cache, without what makes it ours", hide: func(p *corev1.Pod) {
			p.Labels, p.OwnerReferences = map[string]string{flow.LabelManagedBy: flow.ManagedBy}, nil
		}},
		{name: "of another controller", hide: func(p *corev1.Pod) {
			p.Labels = nil
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "a", Controller: new(true)}}
		}, stays: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t, "{podReplicas: 3, image: a}")
			d.settle()
			d.respec(func(spec *kubegroupv1.PodClusterSpec) { spec.Suspend = true })
			if _, _, err := d.pass(); err != nil {
				t.Fatal(err)
			}
			d.change("web-2", test.hide)
			d.respec(func(spec *kubegroupv1.PodClusterSpec) { spec.PodReplicas = new(int32(2)) })
			if test.restart {
				d.start()
			}
			if _, _, err := d.pass(); err != nil {
				t.Fatal(err)
			}
			d.respec(func(spec *kubegroupv1.PodClusterSpec) { spec.Suspend = false })
			d.settle()
			if pod := d.member("web-2"); (pod != nil) != test.stays {
				t.Errorf("there is %v", pod)
			}
			if !slices.Equal(slices.Compact(slices.Clone(d.reads)), []string{"web-2"}) || len(d.reads) > 2 {
				t.Errorf("the requests read %v", d.reads)
			}
			d.reads = nil
			d.settle()
			d.start()
			d.settle()
			if len(d.reads) > 0 {
				t.Errorf("at rest, requests read %v", d.reads)
			}
		})
	}
}

// A pod that can be too many only because other pods failed is remembered until then. While it is terminating, it is still there.
func TestASurplusPodThatHasVanished(t *testing.T) {
	d := newDesk(t, "{podReplicas: 2, image: a}")
	d.settle()
	d.respec(func(spec *kubegroupv1.PodClusterSpec) { spec.PodReplicas = new(int32(1)) })
	before := d.change("web-1", func(p *corev1.Pod) {
		delete(p.Labels, flow.LabelManagedBy)
		p.Finalizers = []string{"example.com/wait"}
	})
	d.cluster.Status.Replicas = 1
	if err := d.Status().Update(t.Context(), d.cluster); err != nil {
		t.Fatal(err)
	}
	d.reconciler.vanishedPods.notice().Delete(event.DeleteEvent{Object: before})
	for range 3 {
		ready, _, err := d.pass()
		if err != nil || ready.Reason != "ScalingDown" || d.member("web-1").DeletionTimestamp == nil || d.cluster.Status.Replicas != 2 {
			t.Fatalf("it is %+v, %v", ready, err)
		}
	}
	d.change("web-1", func(p *corev1.Pod) { p.Finalizers = nil })
	d.settle()
	d.reads = nil
	d.settle()
	if len(d.reads) > 0 || d.cluster.Status.Replicas != 1 {
		t.Errorf("requests read %v, and the status is %+v", d.reads, d.cluster.Status)
	}
}

// When pods are deleted as usual, none is searched for.
func TestDeletedPodsAreNotSearchedFor(t *testing.T) {
	d := newDesk(t, "{podReplicas: 4, image: a}")
	d.settle()
	pods := []*corev1.Pod{d.member("web-2"), d.member("web-3")}
	d.respec(func(spec *kubegroupv1.PodClusterSpec) { spec.PodReplicas = new(int32(2)) })
	if _, _, err := d.pass(); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		d.reconciler.vanishedPods.notice().Delete(event.DeleteEvent{Object: pod})
	}
	d.settle()
	if len(d.reads) > 0 {
		t.Errorf("requests read %v", d.reads)
	}
	leaving := pods[0].DeepCopy()
	leaving.UID, leaving.DeletionTimestamp = "other", new(metav1.Now())
	d.reconciler.vanishedPods.notice().Delete(event.DeleteEvent{Object: leaving})
	if names := d.reconciler.vanishedPods.of(d.cluster.UID); len(names) > 0 {
		t.Errorf("it remembers %v", names)
	}
	// The status can hold any number.
	d.cluster.Status.Replicas = 1 << 30
	if err := d.Status().Update(t.Context(), d.cluster); err != nil {
		t.Fatal(err)
	}
	d.respec(func(*kubegroupv1.PodClusterSpec) {})
	if d.settle(); len(d.reads) > mostSought || !slices.Contains(d.reads, "web-2") {
		t.Errorf("%d requests read %v", len(d.reads), d.reads)
	}
}
