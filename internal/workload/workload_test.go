// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
	"github.com/opdock/opdock/internal/workload"
)

func TestStrategyIsGivenInFull(t *testing.T) {
	for want, strategy := range map[string]*sharedv1.DeploymentStrategy{
		`{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}`: nil,
		`{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":"25%"}}`: {
			RollingUpdate: &sharedv1.RollingUpdate{MaxUnavailable: ptr.To(intstr.FromInt32(0))},
		},
		`{"type":"Recreate"}`: {Type: appsv1.RecreateDeploymentStrategyType},
	} {
		if got, err := json.Marshal(workload.Strategy(strategy)); err != nil || string(got) != want {
			t.Errorf("got %s (%v), want %s", got, err, want)
		}
	}
}

func TestRollout(t *testing.T) {
	condition := func(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason string) []appsv1.DeploymentCondition {
		return []appsv1.DeploymentCondition{{Type: kind, Status: status, Reason: reason, Message: "because"}}
	}
	trouble := &health.Trouble{Pod: "a", Reason: "ErrImagePull"}
	for name, test := range map[string]struct {
		status  appsv1.DeploymentStatus
		trouble *health.Trouble
		stalled bool
		reason  string
	}{
		"not seen yet":         {appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, trouble, false, "RolloutStarting"},
		"done":                 {appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}, nil, false, ""},
		"old ones are left":    {appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 2}, nil, false, "RollingOut"},
		"a pod is in trouble":  {appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1}, trouble, true, "ImagePullBackOff"},
		"no pod can be made":   {appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: condition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate")}, trouble, true, "FailedCreate"},
		"it takes too long":    {appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "Deadline")}, nil, true, "Deadline"},
		"trouble is over soon": {appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "Updated")}, nil, false, "RollingOut"},
	} {
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)}, Status: test.status,
		}
		err := workload.Outcome(deployment, test.trouble)
		if flow.Reason(err) != test.reason || flow.IsStalled(err) != test.stalled || (err == nil) != (test.reason == "") {
			t.Errorf("%s: the outcome is %v with reason %q", name, err, flow.Reason(err))
		}
	}
}
