// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// deploy creates a Deployment and returns when all of its replicas are available.
func deploy(ctx context.Context, config *rest.Config, name string, replicas int32) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	if _, err := client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	return waitAvailable(ctx, config, name, replicas)
}

// waitAvailable returns when all replicas of a Deployment are available. It watches, because polling would add up to
// one interval to the measured time.
func waitAvailable(ctx context.Context, config *rest.Config, name string, replicas int32) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	watcher, err := client.AppsV1().Deployments(metav1.NamespaceDefault).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if deployment, ok := event.Object.(*appsv1.Deployment); ok && deployment.Status.AvailableReplicas >= replicas {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the watch of Deployment %s ended", name), ctx.Err())
}

// addKwokNode creates a node that kwok's controller simulates.
func addKwokNode(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("2000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-0", Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	_, err = client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	return err
}
