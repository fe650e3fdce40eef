// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// conditionsIn returns the conditions of kinds that have them.
func conditionsIn(object client.Object) []Condition {
	var result []Condition
	add := func(kind, status any, reason, message string, since metav1.Time) {
		result = append(result, Condition{Type: fmt.Sprint(kind), Status: fmt.Sprint(status), Reason: reason, Message: message, Since: since.Time})
	}
	switch object := object.(type) {
	case *unstructured.Unstructured:
		for _, c := range conditionsOf(object) {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *appsv1.Deployment:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *appsv1.ReplicaSet:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *appsv1.StatefulSet:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *appsv1.DaemonSet:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *batchv1.Job:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *corev1.Pod:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	case *policyv1.PodDisruptionBudget:
		for _, c := range object.Status.Conditions {
			add(c.Type, c.Status, c.Reason, c.Message, c.LastTransitionTime)
		}
	}
	return result
}

// conditionsOf skips invalid conditions instead of failing, so the tree shows the others.
func conditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var conditions []metav1.Condition
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		var condition metav1.Condition
		if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &condition) == nil {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}
