// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployments is about Deployments as such: how far a rollout is, and what is in its way. The kinds whose pods
// are kept by a Deployment use it.
package deployments

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/pods"
)

// Rollout says how far a Deployment is, as the outcome of a pass: nil if all its pods are as it says and available. The
// trouble is that of a pod, or nil.
func Rollout(deployment *appsv1.Deployment, trouble *pods.Trouble) error {
	want := ptr.Deref(deployment.Spec.Replicas, 1)
	status := deployment.Status
	switch failure, progress := Condition(deployment, appsv1.DeploymentReplicaFailure), Condition(deployment, appsv1.DeploymentProgressing); {
	case status.ObservedGeneration < deployment.Generation:
		return flow.Waiting("RolloutStarting", "Deployment %s has been changed and is about to roll out", deployment.Name)
	case status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want:
		return nil
	case failure != nil && failure.Status == corev1.ConditionTrue:
		return flow.Stalled(failure.Reason, pods.Advise(errors.New(failure.Message), &deployment.Spec.Template.Spec))
	case trouble != nil:
		return flow.Stalled(trouble.Kind(), trouble)
	case progress != nil && progress.Status == corev1.ConditionFalse:
		return flow.Stalled(progress.Reason, errors.New(progress.Message))
	default:
		return flow.Waiting("RollingOut", "%d of %d pods are updated, %d are available", status.UpdatedReplicas, want, status.AvailableReplicas)
	}
}

// Condition returns a condition of a Deployment, or nil if it has none of that type.
func Condition(deployment *appsv1.Deployment, conditionType appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	index := slices.IndexFunc(deployment.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == conditionType })
	if index < 0 {
		return nil
	}
	return &deployment.Status.Conditions[index]
}

// Trouble looks for a pod of the Deployment's latest revision that cannot start, if there is reason to.
func Trouble(ctx context.Context, reader client.Reader, deployment *appsv1.Deployment) (*pods.Trouble, error) {
	if deployment.Status.UnavailableReplicas == 0 {
		return nil, nil //nolint:nilnil // all is well
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of Deployment %s: %w", deployment.Name, err)
	}
	var list corev1.PodList
	if err := reader.List(ctx, &list, client.InNamespace(deployment.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return pods.FirstTrouble(pods.Newest(list.Items, appsv1.DefaultDeploymentUniqueLabelKey)), nil
}
