// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

const (
	// objectName is the name of the Deployment or AppService in each namespace.
	objectName = "web"
	// fieldOwner is the field manager of the changes. Records distinguish the changes from their consequences by it.
	fieldOwner = "learner"
	// behaviourAnnotation controls how simulated pods behave.
	behaviourAnnotation = "opdock.dev/behaviour"
)

// subject is the object that the changes are made to.
type subject interface {
	create(ctx context.Context, state State) error
	set(ctx context.Context, state State) error
	deletePods(ctx context.Context, number int) error
	// missing explains why the subject is not in the state yet. It returns an empty string if it is.
	missing(ctx context.Context, state State) (string, error)
}

// place is the namespace of a subject and its pods.
type place struct {
	client.Client
	namespace string
}

// deletePods deletes the first pods by name, one after the other, like kubectl.
func (p *place) deletePods(ctx context.Context, number int) error {
	pods, err := p.pods(ctx)
	if err != nil {
		return err
	}
	if len(pods) < number {
		return fmt.Errorf("deleting pods: only %d pods exist", len(pods))
	}
	for i := range pods[:number] {
		if err := p.Delete(ctx, &pods[i]); err != nil {
			return fmt.Errorf("deleting pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

func (p *place) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := p.List(ctx, &list, client.InNamespace(p.namespace)); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// missingPods also counts pods that are being deleted.
func (p *place) missingPods(ctx context.Context, want int32) (string, error) {
	pods, err := p.pods(ctx)
	if err != nil || len(pods) == int(want) {
		return "", err
	}
	return fmt.Sprintf("%d pods exist instead of %d", len(pods), want), nil
}

// missingFrom explains why the rollout of a Deployment is not complete.
func missingFrom(d *appsv1.Deployment, state State) string {
	status := d.Status
	switch want := state.Replicas; {
	case ptr.Deref(d.Spec.Replicas, 1) != want, d.Spec.Strategy.Type != state.Strategy:
		return "the Deployment has not been changed yet"
	case status.ObservedGeneration != d.Generation:
		return "the Deployment has not been reconciled yet"
	case status.Replicas != want, status.UpdatedReplicas != want, status.AvailableReplicas != want:
		return fmt.Sprintf("%d of %d pods are available", status.AvailableReplicas, want)
	}
	return ""
}

// deploymentSubject is a Deployment that is changed directly, as in the learner's experiment.
type deploymentSubject struct {
	place
	containers int
	behaviour  string
}

func (s *deploymentSubject) create(ctx context.Context, state State) error {
	labels := map[string]string{"app": objectName}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: behaviourOf(s.behaviour)}}
	for i := range s.containers {
		template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: fmt.Sprintf("container-%d", i+1), Image: "web"})
	}
	return s.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: objectName},
		Spec: appsv1.DeploymentSpec{
			Replicas: &state.Replicas, Strategy: appsv1.DeploymentStrategy{Type: state.Strategy},
			Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
		},
	}, client.FieldOwner(fieldOwner))
}

func (s *deploymentSubject) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}
	return d, s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: objectName}, d)
}

func (s *deploymentSubject) set(ctx context.Context, state State) error {
	d, err := s.deployment(ctx)
	if err != nil {
		return err
	}
	before := d.DeepCopy()
	d.Spec.Replicas = &state.Replicas
	if d.Spec.Strategy.Type != state.Strategy {
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: state.Strategy}
	}
	return s.Patch(ctx, d, client.MergeFrom(before), client.FieldOwner(fieldOwner))
}

func (s *deploymentSubject) missing(ctx context.Context, state State) (string, error) {
	d, err := s.deployment(ctx)
	if err != nil {
		return "", err
	}
	if missing := missingFrom(d, state); missing != "" {
		return missing, nil
	}
	return s.missingPods(ctx, state.Replicas)
}

// appServiceSubject is an AppService. Its pods have one container. A policy adds the others, like sidecars.
type appServiceSubject struct {
	place
	behaviour string
}

func (s *appServiceSubject) create(ctx context.Context, state State) error {
	app := &appv1.AppService{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: objectName},
		Spec: appv1.AppServiceSpec{
			Size: &state.Replicas, Image: "web", Ports: []appv1.ServicePort{{Port: 80}},
			Strategy: &sharedv1.DeploymentStrategy{Type: state.Strategy},
		},
	}
	if annotations := behaviourOf(s.behaviour); annotations != nil {
		app.Spec.PodMetadata = &sharedv1.PodMetadata{Annotations: annotations}
	}
	return s.Create(ctx, app, client.FieldOwner(fieldOwner))
}

func (s *appServiceSubject) app(ctx context.Context) (*appv1.AppService, error) {
	app := &appv1.AppService{}
	return app, s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: objectName}, app)
}

func (s *appServiceSubject) set(ctx context.Context, state State) error {
	app, err := s.app(ctx)
	if err != nil {
		return err
	}
	before := app.DeepCopy()
	app.Spec.Size = &state.Replicas
	app.Spec.Strategy = &sharedv1.DeploymentStrategy{Type: state.Strategy}
	return s.Patch(ctx, app, client.MergeFrom(before), client.FieldOwner(fieldOwner))
}

func (s *appServiceSubject) missing(ctx context.Context, state State) (string, error) {
	app, err := s.app(ctx)
	if err != nil {
		return "", err
	}
	if app.Status.ObservedGeneration != app.Generation || !meta.IsStatusConditionTrue(app.Status.Conditions, sharedv1.ConditionReady) {
		return "the AppService is not ready", nil
	}
	d := &appsv1.Deployment{}
	if err := s.Get(ctx, client.ObjectKeyFromObject(app), d); err != nil {
		return "", err
	}
	if missing := missingFrom(d, state); missing != "" {
		return missing, nil
	}
	return s.missingPods(ctx, state.Replicas)
}

func behaviourOf(behaviour string) map[string]string {
	if behaviour == "" {
		return nil
	}
	return map[string]string{behaviourAnnotation: behaviour}
}
