// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opdock/opdock/internal/pods"
)

// whenPodMatters lets through only those changes of pods that a pass would see. A kubelet changes the status of a pod
// several times until it runs, and each pass looks at all pods.
func whenPodMatters() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isPod := e.ObjectOld.(*corev1.Pod)
		after, isPodToo := e.ObjectNew.(*corev1.Pod)
		return !isPod || !isPodToo || matters(before, after)
	}}
}

func matters(before, after *corev1.Pod) bool {
	return before.UID != after.UID || stateOf(before) != stateOf(after) ||
		!apiequality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// podState is what members and troubles are made of.
type podState struct {
	terminating bool
	phase       corev1.PodPhase
	ready       corev1.PodCondition
	trouble     string
	renewal     string
	containers  string
}

func stateOf(object client.Object) podState {
	pod := object.(*corev1.Pod)
	state := podState{terminating: !pod.DeletionTimestamp.IsZero(), phase: pod.Status.Phase, renewal: pod.Annotations[annotationRenewal]}
	if condition := readyCondition(pod); condition != nil {
		state.ready.Status = condition.Status
		state.ready.LastTransitionTime.Time = condition.LastTransitionTime.UTC()
	}
	if trouble := pods.TroubleOf(pod); trouble != nil {
		state.trouble = trouble.Kind()
	}
	if state.renewal != "" {
		ids := make([]string, 0, len(pod.Status.ContainerStatuses))
		for _, status := range pod.Status.ContainerStatuses {
			ids = append(ids, status.ContainerID)
		}
		state.containers = strings.Join(ids, " ")
	}
	return state
}
