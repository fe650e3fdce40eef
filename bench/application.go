// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
)

// application holds the objects that the fleet writes for an AppService. They are recorded from a running manager, so
// every contender writes the same children and the same status, whatever the current fleet writes.
type application struct {
	deployment, service []byte // JSON that the manager sends, without owner reference and hash
	status              []byte // JSON of the status of a ready AppService
}

// recorded is the name of the recorded AppService. It occurs nowhere else in its objects, so it can be replaced.
const recorded = "recorded-application"

// appServiceOwner is the field owner of the controller of AppServices.
const appServiceOwner = "opdock-appservice"

// recordApplication runs a manager with one AppService and reads back the objects that the manager wrote.
func recordApplication(ctx context.Context, e environment, program string) (a application, err error) {
	say("Recording the objects that the fleet writes for an AppService")
	return a, withFleet(ctx, e, program, "fleet-recorded", func(f *fleet) error {
		if _, err := f.createAppServices(ctx, 1, func(int) string { return recorded }); err != nil {
			return err
		}
		key := client.ObjectKey{Namespace: f.namespace, Name: recorded}
		var (
			app        appv1.AppService
			deployment appsv1.Deployment
			service    corev1.Service
		)
		for _, object := range []client.Object{&app, &deployment, &service} {
			if err := f.Get(ctx, key, object); err != nil {
				return err
			}
		}
		a, err = applicationFrom(&app, &deployment, &service)
		return err
	})
}

func applicationFrom(app *appv1.AppService, deployment *appsv1.Deployment, service *corev1.Service) (a application, err error) {
	// Extraction returns the fields that the manager sent, without those that the server defaulted.
	deployment.ManagedFields, service.ManagedFields = asApplied(deployment), asApplied(service)
	sentDeployment, err := appsv1ac.ExtractDeployment(deployment, appServiceOwner)
	if err != nil {
		return a, err
	}
	sentService, err := corev1ac.ExtractService(service, appServiceOwner)
	if err != nil {
		return a, err
	}
	if sentDeployment.Spec == nil || sentService.Spec == nil {
		return a, fmt.Errorf("the children of AppService %s have no fields owned by %s", app.Name, appServiceOwner)
	}
	sentDeployment.OwnerReferences, sentService.OwnerReferences = nil, nil
	delete(sentDeployment.Annotations, flow.AppliedAnnotation)
	delete(sentService.Annotations, flow.AppliedAnnotation)
	if a.deployment, err = json.Marshal(sentDeployment); err != nil {
		return a, err
	}
	if a.service, err = json.Marshal(sentService); err != nil {
		return a, err
	}
	a.status, err = json.Marshal(app.Status)
	return a, err
}

// asApplied marks the fields that the controller created an object with as applied, because only applied fields can
// be extracted.
func asApplied(object metav1.Object) []metav1.ManagedFieldsEntry {
	entries := object.GetManagedFields()
	for i := range entries {
		if entries[i].Manager == appServiceOwner && entries[i].Subresource == "" {
			entries[i].Operation = metav1.ManagedFieldsOperationApply
		}
	}
	return entries
}

// written is a copy of the recorded application under another name.
type written struct {
	app        *appv1.AppService
	status     appv1.AppServiceStatus
	deployment *appsv1.Deployment
	service    *corev1.Service
}

func (a application) as(name string) (w written, err error) {
	w = written{app: appService(name), deployment: &appsv1.Deployment{}, service: &corev1.Service{}}
	for _, part := range []struct {
		from []byte
		to   any
	}{{a.deployment, w.deployment}, {a.service, w.service}, {a.status, &w.status}} {
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(part.from), recorded, name)), part.to); err != nil {
			return w, fmt.Errorf("creating %s from the recorded application: %w", name, err)
		}
	}
	for _, child := range []client.Object{w.deployment, w.service} {
		// The value is as long as the hash that the manager writes.
		annotations := child.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[flow.AppliedAnnotation] = "0123456789abcdef"
		child.SetAnnotations(annotations)
	}
	return w, nil
}

// children returns the objects to create for the AppService. The AppService must have a UID, for their owner
// references.
func (w written) children() []client.Object {
	owner := metav1.OwnerReference{
		APIVersion: appv1.GroupVersion.String(), Kind: "AppService", Name: w.app.Name, UID: w.app.UID,
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}
	objects := []client.Object{w.deployment, w.service}
	for _, child := range objects {
		child.SetOwnerReferences([]metav1.OwnerReference{owner})
	}
	return objects
}

func appService(name string) *appv1.AppService {
	return &appv1.AppService{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       appv1.AppServiceSpec{Size: ptr.To[int32](1), Image: "web", Ports: []appv1.ServicePort{{Port: 80}}},
	}
}
