// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/opdock/opdock/internal/flow"
)

func TestPodsAreCachedWithoutTheirSpec(t *testing.T) {
	pod := func(kind string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "p", Labels: map[string]string{flow.LabelKind: kind, flow.LabelInstance: "i"}, Annotations: map[string]string{"a": "b"},
				OwnerReferences: []metav1.OwnerReference{{UID: "u"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "opdock-podcluster"}},
			},
			Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Image: "web"}}},
			Status: corev1.PodStatus{Phase: corev1.PodFailed, PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}, QOSClass: corev1.PodQOSBurstable},
		}
	}
	transform := slimPods(keepOwnFields, keepHealth)
	of := func(object any) *corev1.Pod {
		t.Helper()
		result, err := transform(object)
		if err != nil {
			t.Fatal(err)
		}
		return result.(*corev1.Pod)
	}
	slim := of(pod("appservice"))
	if len(slim.Spec.Containers) != 0 || slim.ManagedFields != nil || slim.Annotations != nil || slim.Status.QOSClass != "" {
		t.Errorf("it still has %+v", slim)
	}
	if slim.Spec.NodeName != "n" || slim.Status.Phase != corev1.PodFailed || len(slim.Status.PodIPs) != 1 || slim.Labels[flow.LabelInstance] != "i" || len(slim.OwnerReferences) != 1 {
		t.Errorf("it lacks what is read: %+v", slim)
	}
	if whole := of(pod("podcluster")); len(whole.Spec.Containers) != 1 || len(whole.ManagedFields) != 1 || whole.Annotations == nil || whole.Status.QOSClass == "" {
		t.Errorf("a pod of a PodCluster lacks %+v", whole)
	}
	relabeled := pod("rival")
	relabeled.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubegroup.generals.space/v1", Kind: "PodCluster", UID: "u", Controller: new(true)}}
	if whole := of(relabeled); len(whole.Spec.Containers) != 1 || len(whole.ManagedFields) != 1 || whole.Annotations == nil {
		t.Errorf("a pod of a PodCluster with another label lacks %+v", whole)
	}
	namesake := pod("rival")
	namesake.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "PodCluster", UID: "u", Controller: new(true)}}
	if slim := of(namesake); len(slim.Spec.Containers) != 0 {
		t.Errorf("a pod of another kind with that name still has %+v", slim.Spec)
	}
	gone := toolscache.DeletedFinalStateUnknown{Key: "p"}
	if result, err := transform(gone); err != nil || result != any(gone) {
		t.Errorf("a tombstone became %+v (%v)", result, err)
	}
}
