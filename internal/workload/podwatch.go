// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

// ToInstance wakes the object that a pod belongs to by its labels, if it is of the given kind.
func ToInstance(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, pod client.Object) []reconcile.Request {
		labels := pod.GetLabels()
		if labels[flow.LabelKind] != kind || labels[flow.LabelInstance] == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: labels[flow.LabelInstance]}}}
	})
}

// WhenTroubleChanges selects only changes in which a pod gets or loses a problem. Controllers that count pods, such
// as a Deployment's, report the other changes.
func WhenTroubleChanges() builder.WatchesOption {
	kind := func(object client.Object) string {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return ""
		}
		if trouble := health.TroubleOf(pod); trouble != nil {
			return trouble.Kind()
		}
		return ""
	}
	return builder.WithPredicates(predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return !e.IsInInitialList && kind(e.Object) != "" },
		UpdateFunc:  func(e event.UpdateEvent) bool { return kind(e.ObjectOld) != kind(e.ObjectNew) },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}
