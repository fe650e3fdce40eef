// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/fleettest"
)

// The pod of a node that does not answer keeps its name until it is certain that it has stopped.
func TestALostNode(t *testing.T) {
	s := newStage(t)
	// A node of its own, since losing it takes all pods on it.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.namespace, Labels: map[string]string{"for": "lost-node"}}}
	node.Spec.Taints = []corev1.Taint{{Key: "for", Value: "lost-node", Effect: corev1.TaintEffectNoSchedule}}
	if err := s.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Delete(context.Background(), node); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	cluster := s.awaitReady(s.create("web", `{podReplicas: 1, image: a, template: {spec: {
		containers: [{name: main}], nodeSelector: {for: lost-node}, terminationGracePeriodSeconds: 1,
		tolerations: [{key: for, operator: Exists}]}}}`))
	s.patch(node, `{"metadata": {"annotations": {"opdock.dev/behaviour": "node-lost"}}}`)
	lost := fleettest.Await(t, s, s.podNamed("web-0"), func(pod *corev1.Pod) string {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionFalse {
				return ""
			}
		}
		return "it is still ready"
	})
	// A change of the template replaces the pod, which cannot confirm that it has stopped.
	s.change(cluster, `{"template": {"metadata": {"labels": {"x": "y"}}}}`)
	fleettest.Await(t, s, s.podNamed("web-0"), func(pod *corev1.Pod) string {
		if pod.DeletionTimestamp.IsZero() {
			return "it is not being deleted"
		}
		return ""
	})
	// A PodCluster that is looked at later becomes ready, so this one has been looked at as well.
	s.awaitReady(s.create("probe", "{podReplicas: 1}"))
	if pod := s.pod("web-0"); pod.UID != lost.UID {
		t.Fatal("the pod was replaced although it may still be running")
	}
	live := fleettest.Await(t, s, node, func(*corev1.Node) string { return "" })
	before := live.DeepCopy()
	live.Spec.Taints = append(live.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute})
	if err := s.Patch(t.Context(), live, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	s.awaitSuccessor(lost)
}
