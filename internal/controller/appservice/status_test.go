// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/opdock/opdock/api/app/v1"
)

// The app has generation 7, and its Deployment has generation 4.
func TestStatusOfAnOldGenerationIsNotTakenForANewOne(t *testing.T) {
	for name, test := range map[string]struct {
		observed int64 // by the Deployment
		known    int64 // the generation of the condition so far; 0 if there is none
		want     string
	}{
		"up to date":                         {4, 6, "3 updated, 3 available, generation 7"},
		"just applied":                       {3, 6, "0 updated, 3 available, generation 6"},
		"adopted and just applied":           {3, 0, "0 updated, 3 available, no condition"},
		"a step of the autoscaler":           {3, 7, "3 updated, 3 available, generation 7"},
		"the first status of the Deployment": {4, 0, "3 updated, 3 available, generation 7"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{app: app(t, `{image: i, size: 3}`), deployment: &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: 4},
				Status: appsv1.DeploymentStatus{
					ObservedGeneration: test.observed, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3,
					Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "R"}},
				},
			}}
			if test.known != 0 {
				s.app.Status.Conditions = []metav1.Condition{{
					Type: appv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "R", ObservedGeneration: test.known,
				}}
			}
			setStatus(s)
			status := s.app.Status
			got := fmt.Sprintf("%d updated, %d available, ", status.UpdatedReplicas, status.AvailableReplicas)
			if available := meta.FindStatusCondition(status.Conditions, appv1.ConditionAvailable); available != nil {
				got += fmt.Sprintf("generation %d", available.ObservedGeneration)
			} else {
				got += "no condition"
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
