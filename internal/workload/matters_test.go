// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/flow"
)

func TestMatters(t *testing.T) {
	rolledOut := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{UID: "u", Generation: 1, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{flow.AppliedAnnotation: "h"}},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3},
	}
	rollingOut := rolledOut.DeepCopy()
	rollingOut.Status.AvailableReplicas = 1
	failure := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate"}
	stalled := rollingOut.DeepCopy()
	stalled.Status.Conditions = []appsv1.DeploymentCondition{failure}
	for _, test := range []struct {
		name   string
		before *appsv1.Deployment
		change func(*appsv1.Deployment)
		want   bool
	}{
		{"nothing", rolledOut, func(*appsv1.Deployment) {}, false},
		{"a number on the way", rollingOut, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 }, false},
		{"pods that are going", rolledOut, func(d *appsv1.Deployment) { d.Status.TerminatingReplicas = ptr.To[int32](1) }, false},
		{"a note of the Deployment's own controller", rolledOut, func(d *appsv1.Deployment) { d.Annotations["deployment.kubernetes.io/revision"] = "2" }, false},
		{"the last pod", rollingOut, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 3 }, true},
		{"a pod is lost", rolledOut, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 }, true},
		{"it cannot go on", rollingOut, func(d *appsv1.Deployment) { d.Status.Conditions = []appsv1.DeploymentCondition{failure} }, true},
		{"for another reason", stalled, func(d *appsv1.Deployment) { d.Status.Conditions[0].Reason = "Other" }, true},
		{"it can go on", stalled, func(d *appsv1.Deployment) { d.Status.Conditions = nil }, true},
		{"the spec", rolledOut, func(d *appsv1.Deployment) { d.Generation = 2 }, true},
		{"a label", rolledOut, func(d *appsv1.Deployment) { d.Labels["a"] = "c" }, true},
		{"our annotation", rolledOut, func(d *appsv1.Deployment) { delete(d.Annotations, flow.AppliedAnnotation) }, true},
		{"its owner", rolledOut, func(d *appsv1.Deployment) { d.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }, true},
		{"it goes", rolledOut, func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} }, true},
	} {
		after := test.before.DeepCopy()
		test.change(after)
		if got := Matters(test.before, after); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}
