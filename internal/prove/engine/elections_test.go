// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
	"github.com/opdock/opdock/why"
)

// TestALeaderThatHasEndedResigns has the objects by which operators of different ages elect a leader, and similar ones
// that no operator has renewed.
func TestALeaderThatHasEndedResigns(t *testing.T) {
	const held = `{"holderIdentity":"pod-1","leaseDurationSeconds":15}`
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod-1")}}
	}
	configMap := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Annotations: map[string]string{world.LeaderAnnotation: held}}}
	}
	c := fake.NewClientBuilder().WithObjects(lease("lock"), lease("other"), configMap("lock"), configMap("other")).Build()

	renewed := &lens.Change{Fields: []why.Change{{Path: "metadata.annotations[" + world.LeaderAnnotation + "]"}}}
	elects := &elections{}
	for _, r := range []lens.Request{
		{Verb: "update", Resource: lens.Resource{Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "lock"}, Status: 200},
		{Verb: "update", Resource: lens.Resource{Resource: "configmaps", Namespace: "a", Name: "lock"}, Status: 200, Change: renewed},
		{Verb: "update", Resource: lens.Resource{Resource: "configmaps", Namespace: "a", Name: "gone"}, Status: 200, Change: renewed},
		{Verb: "update", Resource: lens.Resource{Resource: "configmaps", Namespace: "a", Name: "other"}, Status: 200, Change: &lens.Change{Fields: []why.Change{{Path: "data.key"}}}},
		{Verb: "update", Resource: lens.Resource{Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "other"}, Status: 409},
		{Verb: "get", Resource: lens.Resource{Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "other"}, Status: 200},
	} {
		elects.see(&r)
	}
	for range 2 { // the second time, there is no leader
		if err := elects.resign(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"lock": "", "other": "pod-1"} {
		var got coordinationv1.Lease
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: name}, &got); err != nil || ptr.Deref(got.Spec.HolderIdentity, "") != want {
			t.Errorf("the holder of Lease %s is %q, want %q: %v", name, ptr.Deref(got.Spec.HolderIdentity, ""), want, err)
		}
	}
	for name, want := range map[string]string{"lock": `{"holderIdentity":"","leaseDurationSeconds":15}`, "other": held} {
		var got corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: name}, &got); err != nil || got.Annotations[world.LeaderAnnotation] != want {
			t.Errorf("ConfigMap %s has %s, want %s: %v", name, got.Annotations[world.LeaderAnnotation], want, err)
		}
	}

	created := lens.Request{Verb: "create", Resource: lens.Resource{Resource: "configmaps", Namespace: "a"}, Object: &lens.Object{Namespace: "a", Name: "lock"}}
	if !elects.has(&created) {
		t.Error("the creation of an election is a write of its own")
	}
	created.Object.Name = "other"
	if elects.has(&created) {
		t.Error("the creation of another object belongs to an election")
	}
}
