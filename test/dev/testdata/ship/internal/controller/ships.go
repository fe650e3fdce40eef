// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller lets ships greet.
package controller

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "example.com/ship/api/v1"
)

// Ships keeps a ConfigMap with the greeting of each ship.
type Ships struct{ client.Client }

// +kubebuilder:rbac:groups=harbour.example.com,resources=ships,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// Reconcile writes the greeting.
func (s *Ships) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	ship := &v1.Ship{}
	if err := s.Get(ctx, request.NamespacedName, ship); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ship.Namespace, Name: ship.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, s.Client, note, func() error {
		note.Data = map[string]string{"greeting": "ahoy, " + ship.Spec.Greeting}
		return nil
	})
	return ctrl.Result{}, err
}

// Hooks are the webhooks of ships.
type Hooks struct{}

// +kubebuilder:webhook:path=/mutate-harbour-example-com-v1-ship,mutating=true,failurePolicy=fail,sideEffects=None,groups=harbour.example.com,resources=ships,verbs=create;update,versions=v1,name=mship.example.com,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-harbour-example-com-v1-ship,mutating=false,failurePolicy=fail,sideEffects=None,groups=harbour.example.com,resources=ships,verbs=create;update,versions=v1,name=vship.example.com,admissionReviewVersions=v1

// Default hires a crew.
func (Hooks) Default(_ context.Context, ship *v1.Ship) error {
	if ship.Spec.Crew == 0 {
		ship.Spec.Crew = 3
	}
	return nil
}

// ValidateCreate keeps ghost ships out.
func (Hooks) ValidateCreate(_ context.Context, ship *v1.Ship) (admission.Warnings, error) {
	if ship.Spec.Crew < 0 {
		return nil, errors.New("no ghost ships")
	}
	return nil, nil
}

// ValidateUpdate is the same for ships that exist.
func (h Hooks) ValidateUpdate(ctx context.Context, _, ship *v1.Ship) (admission.Warnings, error) {
	return h.ValidateCreate(ctx, ship)
}

// ValidateDelete lets every ship go.
func (Hooks) ValidateDelete(context.Context, *v1.Ship) (admission.Warnings, error) { return nil, nil }

// Setup adds all of it to a manager.
func Setup(manager ctrl.Manager) error {
	if err := ctrl.NewWebhookManagedBy(manager, &v1.Ship{}).WithDefaulter(Hooks{}).WithValidator(Hooks{}).Complete(); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(manager).For(&v1.Ship{}).Complete(&Ships{manager.GetClient()})
}
