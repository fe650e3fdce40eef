// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// In autoscaling/v1, an annotation sets a field of the spec that this version does not have.
func TestAnAutoscalerIsAnnotatedInAnOlderVersion(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
	s.create(owners[1].manifest)
	s.learn([]string{"HorizontalPodAutoscaler"})
	old := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.children[0].GetName()}}
	for range 2 {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/behavior": `+
			`"{\"ScaleDown\":{\"StabilizationWindowSeconds\":7,\"Policies\":[{\"Type\":\"Pods\",\"Value\":1,\"PeriodSeconds\":60}]}}", "note": "theirs"}}}`))
		if err := s.Patch(t.Context(), old, patch, client.FieldOwner("kubectl-annotate")); err != nil {
			t.Fatal(err)
		}
		testenv.Await(t, func() string {
			live := &autoscalingv2.HorizontalPodAutoscaler{}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(old), live); err != nil {
				return err.Error()
			}
			if live.Spec.Behavior != nil {
				return "it still has a behavior"
			}
			if live.Annotations["note"] != "theirs" {
				t.Fatal("the annotation of another writer was removed")
			}
			return s.notReady()
		})
	}
	testenv.Await(t, func() string { return s.noEvent("DriftCorrected", "spec.behavior was added by kubectl-annotate") })
}
