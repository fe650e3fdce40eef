// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rollout is the progress of a Deployment. The zero value means that all its pods are up to date and available.
type Rollout struct {
	// Stuck means that there is no progress without a change; otherwise the rollout continues.
	Stuck bool
	// Reason is for programs, and Message for people. Both are empty if the rollout is complete.
	Reason, Message string
}

// Complete reports whether there is nothing left to do.
func (r Rollout) Complete() bool { return r.Reason == "" }

// RolloutOf reads the status of a Deployment. The trouble comes from one of its pods, or is nil.
func RolloutOf(deployment *appsv1.Deployment, trouble *Trouble) Rollout {
	want := ptr.Deref(deployment.Spec.Replicas, 1)
	status := deployment.Status
	switch failure, progress := Condition(deployment, appsv1.DeploymentReplicaFailure), Condition(deployment, appsv1.DeploymentProgressing); {
	case status.ObservedGeneration < deployment.Generation:
		return Rollout{Reason: "RolloutStarting", Message: fmt.Sprintf("Deployment %s was changed and has not started to roll out", deployment.Name)}
	case status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want:
		return Rollout{}
	case failure != nil && failure.Status == corev1.ConditionTrue:
		return Rollout{Stuck: true, Reason: failure.Reason, Message: failure.Message}
	case trouble != nil:
		return Rollout{Stuck: true, Reason: trouble.Kind(), Message: trouble.Error()}
	case progress != nil && progress.Status == corev1.ConditionFalse:
		return Rollout{Stuck: true, Reason: progress.Reason, Message: progress.Message}
	default:
		message := fmt.Sprintf("%d of %d pods are updated, %d are available", status.UpdatedReplicas, want, status.AvailableReplicas)
		return Rollout{Reason: "RollingOut", Message: message}
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

// TroubleOfDeployment looks for a pod of the Deployment's latest revision that cannot start, if there is reason to.
func TroubleOfDeployment(ctx context.Context, reader client.Reader, deployment *appsv1.Deployment) (*Trouble, error) {
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
	return FirstTrouble(withoutReplaced(Newest(list.Items, appsv1.DefaultDeploymentUniqueLabelKey))), nil
}

// withoutReplaced returns the pods without those that have ended and were replaced since. An evicted pod, for example, remains after its
// replacement is running.
func withoutReplaced(pods []corev1.Pod) []corev1.Pod {
	var latest metav1.Time // of those that have not ended
	for i := range pods {
		if created := pods[i].CreationTimestamp; !hasEnded(&pods[i]) && latest.Before(&created) {
			latest = created
		}
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return hasEnded(&pod) && pod.CreationTimestamp.Before(&latest) })
}

func hasEnded(pod *corev1.Pod) bool {
	return !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}
