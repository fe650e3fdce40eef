// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

// kubectl replace with another manifest removes the owner reference, and all or some of the labels, at once.
func TestReplacedChildrenAreTakenBack(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	s.manage()
	s.create(owners[0].manifest)
	s.learn([]string{"Deployment", "Service", "NetworkPolicy"})
	for i, wanted := range s.children {
		labels := []map[string]any{
			{}, {"app.kubernetes.io/name": "web"}, {"app.kubernetes.io/managed-by": "opdock", "app.kubernetes.io/instance": s.owner.GetName()},
		}[i%3]
		replacement := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": wanted.GetAPIVersion(), "kind": wanted.GetKind(), "spec": wanted.DeepCopy().Object["spec"],
			"metadata": map[string]any{"name": wanted.GetName(), "namespace": wanted.GetNamespace(), "labels": labels},
		}}
		if wanted.GetKind() == "Deployment" {
			_ = unstructured.SetNestedField(replacement.Object, true, "spec", "paused")
		}
		if err := s.Update(t.Context(), replacement, client.FieldOwner("kubectl-replace")); err != nil {
			t.Fatal(err)
		}
		testenv.Await(t, func() string {
			fresh := wanted.DeepCopy()
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(fresh), fresh); err != nil {
				return err.Error()
			}
			if fresh.GetUID() != wanted.GetUID() || !metav1.IsControlledBy(fresh, s.owner) {
				return wanted.GetKind() + " is another one, or not controlled: " + s.message()
			}
			if difference := cmp.Diff(s.essence(wanted), s.essence(fresh)); difference != "" {
				return difference
			}
			return s.notReady()
		})
	}
}

// Whoever may write the status cannot make a broken object Ready.
func TestAnEditedStatusIsCorrected(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	s.configMap("addresses")
	s.manage()
	s.submit(owners[3].manifest)
	isStalled := func() string {
		if reason := s.reason(); reason != "ErrResourceExists" {
			return "the reason is " + reason
		}
		return ""
	}
	testenv.Await(t, isStalled)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"conditions": [
		{"type": "Ready", "status": "True", "reason": "Sure", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`))
	if err := s.Status().Patch(t.Context(), s.owner.DeepCopy(), patch, client.FieldOwner("editor")); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, isStalled)
}
