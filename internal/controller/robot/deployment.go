// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot

import (
	"cmp"
	"context"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/workload"
)

const (
	// labelDeployment keeps the pods of two Deployments of one Robot apart.
	labelDeployment = "opdock.dev/deployment"

	// Defaults of the schema, for older objects without these fields.
	defaultImage     = "nginx:1.29"
	defaultContainer = "robot"
)

func (r *Reconciler) applyDeployment(ctx context.Context, s *scope) error {
	desired, err := deployment(s.robot)
	if err != nil {
		return err
	}
	var live appsv1.Deployment
	if err := s.pass.Apply(ctx, &live, desired); err != nil {
		return err
	}
	s.deployment = &live
	return nil
}

// deployment returns the desired Deployment of a Robot.
func deployment(robot *robotv1.Robot) (*appsv1ac.DeploymentApplyConfiguration, error) {
	name := deploymentName(robot)
	selector := workers(robot)
	// A Robot has two Deployments while its workers move from one to the other. Neither may take the other's pods.
	selector[labelDeployment] = name
	template := robot.Spec.Template
	if template == nil {
		template = &sharedv1.PodTemplate{Spec: sharedv1.PodSpec{Containers: []sharedv1.Container{{Name: defaultContainer}}}}
	}
	secured, err := workload.Secure(template, robot.Spec.SecurityProfile)
	if err != nil {
		return nil, err
	}
	converted, err := workload.Template(secured, cmp.Or(robot.Spec.Image, defaultImage), selector)
	if err != nil {
		return nil, err
	}
	spec := appsv1ac.DeploymentSpec().
		WithReplicas(ptr.Deref(robot.Spec.Replicas, 1)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
		WithTemplate(workload.FollowsSpec(converted)).
		WithStrategy(workload.Strategy(robot.Spec.Strategy))
	return appsv1ac.Deployment(name, robot.Namespace).WithSpec(spec), nil
}

func deploymentName(robot *robotv1.Robot) string {
	return cmp.Or(robot.Spec.DeploymentName, robot.Name)
}

// workers are the labels that all workers of a Robot have, whichever Deployment they belong to.
func workers(robot *robotv1.Robot) map[string]string {
	return workload.SelectorLabels(labelKind, robot.Name)
}
