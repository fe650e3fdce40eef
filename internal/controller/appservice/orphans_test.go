// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
)

// A child that would be adopted if the spec still asked for it is deleted if it does not.
func TestAnObsoleteOrphanIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*corev1.Service)
		gone bool
	}{
		"without an owner reference": {func(live *corev1.Service) { live.OwnerReferences = nil }, true},
		"with another controller": {func(live *corev1.Service) {
			live.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "x", Controller: new(true)}}
		}, false},
		"with the labels of another owner": {func(live *corev1.Service) {
			live.OwnerReferences, live.Labels[flow.LabelInstance] = nil, "other"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReconciled(t, app(t, `{image: i, ports: [{port: 80}]}`))
			r.pass()
			key := client.ObjectKey{Namespace: "n", Name: "web"}
			var live corev1.Service
			if err := r.Get(t.Context(), key, &live); err != nil {
				t.Fatal(err)
			}
			test.edit(&live)
			if err := r.Update(t.Context(), &live); err != nil {
				t.Fatal(err)
			}
			var owner appv1.AppService
			if err := r.Get(t.Context(), key, &owner); err != nil {
				t.Fatal(err)
			}
			owner.Spec.Ports = nil
			owner.Generation++
			if err := r.Update(t.Context(), &owner); err != nil {
				t.Fatal(err)
			}
			r.pass()
			if err := r.Get(t.Context(), key, &live); apierrors.IsNotFound(err) != test.gone {
				t.Errorf("reading the Service: %v", err)
			}
		})
	}
}

// An obsolete child is held by a finalizer, and loses its label while the AppService waits for its end.
func TestAChildThatLosesItsLabelWhileItIsDeletedIsNotForgotten(t *testing.T) {
	r := newReconciled(t, app(t, `{image: i, ports: [{port: 80}]}`))
	r.pass()
	key := client.ObjectKey{Namespace: "n", Name: "web"}
	edit := func(object client.Object, change func()) {
		t.Helper()
		if err := r.Get(t.Context(), key, object); err != nil {
			t.Fatal(err)
		}
		change()
		if err := r.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	reason := func() string {
		t.Helper()
		r.pass()
		var owner appv1.AppService
		if err := r.Get(t.Context(), key, &owner); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(owner.Status.Conditions, "Ready").Reason
	}
	r.rollOut()
	if got := reason(); got != flow.ReasonReady {
		t.Fatalf("the reason is %s", got)
	}
	var service corev1.Service
	edit(&service, func() { service.Finalizers = []string{"example.com/hold"} })
	var owner appv1.AppService
	edit(&owner, func() {
		owner.Spec.Ports = nil
		owner.Generation++
	})
	for range 2 {
		if got := reason(); got != "Deleting" {
			t.Fatalf("the reason is %s", got)
		}
	}
	edit(&service, func() { delete(service.Labels, flow.LabelManagedBy) })
	for range 2 {
		if got := reason(); got == flow.ReasonReady {
			t.Errorf("the reason is %s", got)
		}
	}
	edit(&service, func() { service.Finalizers = nil })
	if got := reason(); got != flow.ReasonReady {
		t.Errorf("the reason is %s", got)
	}
}
