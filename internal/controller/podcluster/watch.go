// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

// clustersOf returns the PodClusters that a pod matters to: the one that controls it, and the one that its labels
// name, because a pod may not have a controller yet, or any more. Nearly always they are the same. Two watches would
// trigger it twice, the second time perhaps after the first reconcile has started.
func clustersOf(_ context.Context, pod client.Object) []reconcile.Request {
	var names []string
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "PodCluster" {
		if version, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && version.Group == kubegroupv1.GroupVersion.Group {
			names = append(names, owner.Name)
		}
	}
	labels := pod.GetLabels()
	if name := labels[flow.LabelInstance]; name != "" && labels[flow.LabelKind] == labelKind && !slices.Contains(names, name) {
		names = append(names, name)
	}
	requests := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}})
	}
	return requests
}

// whenPodMatters selects the pod changes that affect a reconcile. A kubelet changes the status of a pod several times
// until it runs, and each reconcile reads all pods.
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
		!apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		!apiequality.Semantic.DeepEqual(unscheduled(before), unscheduled(after)) ||
		!slices.EqualFunc(ownFields(before), ownFields(after), metav1.FieldsV1.Equal) ||
		// Without our records of it, annotations have to be compared themselves.
		!isCreatedByUs(after) && !maps.Equal(before.Annotations, after.Annotations)
}

// unscheduled is the spec of a pod without the node, which the scheduler sets.
func unscheduled(pod *corev1.Pod) corev1.PodSpec {
	spec := pod.Spec
	spec.NodeName = ""
	return spec
}

// ownFields returns our entries in the managed fields of an object. They change when other writers change our fields.
func ownFields(object metav1.Object) (fields []metav1.FieldsV1) {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == string(fieldOwner) && entry.FieldsV1 != nil {
			fields = append(fields, *entry.FieldsV1)
		}
	}
	return fields
}

// podState is the part of a pod that members and troubles depend on.
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
	if trouble := health.TroubleOf(pod); trouble != nil {
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
