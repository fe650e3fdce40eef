// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/internal/flow"
)

// findDeployments reads the cluster and not the status: after a crash, or a second rename during the first, the
// status may lack some Deployments.
func (r *Reconciler) findDeployments(ctx context.Context, s *scope) error {
	var list appsv1.DeploymentList
	if err := s.pass.Owned(ctx, &list); err != nil {
		return err
	}
	if old := s.robot.Status.DeploymentName; old != "" && old != deploymentName(s.robot) &&
		!slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return d.Name == old }) {
		var hidden appsv1.Deployment
		if found, err := s.pass.Hidden(ctx, &hidden, old); err != nil {
			return err
		} else if found {
			list.Items = append(list.Items, hidden)
		}
	}
	// The oldest comes first: if it is unknown which of them is active, it is most likely that one.
	slices.SortFunc(list.Items, func(a, b appsv1.Deployment) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range list.Items {
		if list.Items[i].Name == deploymentName(s.robot) {
			s.deployment = &list.Items[i]
		} else {
			s.predecessors = append(s.predecessors, list.Items[i])
		}
	}
	return nil
}

// removeOvertaken deletes new Deployments that became obsolete when the name was changed again.
func (r *Reconciler) removeOvertaken(ctx context.Context, s *scope) error {
	for i := range s.predecessors {
		if !overtaken(s.robot, &s.predecessors[i]) {
			continue
		}
		if _, err := s.pass.Delete(ctx, s.predecessors[i].DeepCopy()); err != nil {
			return err
		}
	}
	return nil
}

// overtaken reports whether a predecessor does no work. One that does stays until the new Deployment has taken over, and
// so does the one that the status names, even if it has no worker at the moment.
func overtaken(robot *robotv1.Robot, predecessor *appsv1.Deployment) bool {
	return predecessor.Name != robot.Status.DeploymentName && predecessor.Status.AvailableReplicas == 0
}

// removePredecessors comes after the rollout, so the new Deployment has taken over.
func (r *Reconciler) removePredecessors(ctx context.Context, s *scope) error {
	var left []string
	for i := range s.predecessors {
		predecessor := s.predecessors[i].DeepCopy()
		gone, err := s.pass.Delete(ctx, predecessor)
		if err != nil {
			return err
		}
		if gone {
			continue
		}
		if err := s.pass.WatchEnd(ctx, predecessor); err != nil {
			return err
		}
		left = append(left, s.predecessors[i].Name)
	}
	if len(left) > 0 {
		return flow.Waiting("RemovingPredecessor", "Deployment %s is available, %s is being deleted", s.deployment.Name, strings.Join(left, ", "))
	}
	s.predecessors = nil
	return nil
}
