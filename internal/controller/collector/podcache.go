// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/why"
)

// podCaches returns the caches that hold all pods between them: the manager's cache holds those of the fleet, and another
// one the rest, so the API server sends each pod once. The second one exists only if the controller of Collectors runs,
// and keeps the few hundred bytes of each pod that are read here.
func podCaches(mgr ctrl.Manager, o flow.Options) ([]cache.Cache, error) {
	foreign, err := labels.NewRequirement(flow.LabelManagedBy, selection.NotEquals, []string{flow.ManagedBy})
	if err != nil {
		return nil, fmt.Errorf("selecting pods: %w", err)
	}
	transform := strip
	if o.Why != nil {
		transform = stripButWriters
	}
	options := cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: labels.NewSelector().Add(*foreign), Transform: transform}},
	}
	if len(o.Namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.Namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	others, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return nil, fmt.Errorf("creating the cache of pods: %w", err)
	}
	if err := mgr.Add(others); err != nil {
		return nil, fmt.Errorf("adding the cache of pods: %w", err)
	}
	return []cache.Cache{mgr.GetCache(), others}, nil
}

// strip drops all fields that are not read here.
func strip(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		return stripPod(pod), nil
	}
	return object, nil
}

func stripPod(pod *corev1.Pod) *corev1.Pod {
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Labels: pod.Labels, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIPs: pod.Status.PodIPs},
	}
	if owner := metav1.GetControllerOf(pod); owner != nil {
		stripped.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			stripped.Status.Conditions = []corev1.PodCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return stripped
}

// stripButWriters also keeps the writers of the pod, for the records of package why.
func stripButWriters(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	stripped := stripPod(pod)
	stripped.ManagedFields = pod.ManagedFields
	return keepWriters(stripped)
}

var keepWriters = why.KeepWriters(nil)
