// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/workload"
)

// setStatus copies the status of the Deployments. While there are several, the workers of all of them count.
func setStatus(s *scope) {
	status := &s.robot.Status
	status.Selector = labels.SelectorFromSet(workers(s.robot)).String()
	status.DeploymentName = manages(s)
	status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0, 0
	for i := range s.predecessors {
		add(status, &s.predecessors[i])
	}
	if s.deployment != nil {
		add(status, s.deployment)
		if s.deployment.Status.ObservedGeneration >= s.deployment.Generation {
			// Otherwise the number is about the old spec.
			status.UpdatedReplicas = s.deployment.Status.UpdatedReplicas
		}
	}
}

func add(status *robotv1.RobotStatus, deployment *appsv1.Deployment) {
	status.Replicas += deployment.Status.Replicas
	status.ReadyReplicas += deployment.Status.ReadyReplicas
	status.AvailableReplicas += deployment.Status.AvailableReplicas
}

// manages returns the name of the active Deployment. A new one takes over when it is rolled out, or when there is no
// other. One that the cache does not hold is known by this name only, so it stays there until it is gone.
func manages(s *scope) string {
	switch {
	case slices.ContainsFunc(s.predecessors, func(d appsv1.Deployment) bool {
		return d.Name == s.robot.Status.DeploymentName && d.Labels[flow.LabelManagedBy] != flow.ManagedBy
	}):
		return s.robot.Status.DeploymentName
	case s.deployment != nil && (len(s.predecessors) == 0 || workload.Outcome(s.deployment, nil) == nil):
		return s.deployment.Name
	case len(s.predecessors) == 0:
		return s.robot.Status.DeploymentName
	case slices.ContainsFunc(s.predecessors, func(d appsv1.Deployment) bool { return d.Name == s.robot.Status.DeploymentName }):
		return s.robot.Status.DeploymentName
	default:
		return s.predecessors[0].Name
	}
}
