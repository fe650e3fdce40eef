// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// The operator of the kind Beacon, which runs a Deployment for each of them. Tests change it between two commits.
package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var kind = schema.GroupVersionKind{Group: "coast.example.com", Version: "v1", Kind: "Beacon"}

const (
	finalizer = "coast.example.com/lamp"
	oil       = "whale"
)

func main() {
	serve(kind, &appsv1.Deployment{}, func(c client.Client) reconcile.Reconciler { return &reconciler{c} })
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	one := blank(kind)
	if err := r.Get(ctx, request.NamespacedName, one); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if one.GetDeletionTimestamp() != nil {
		if controllerutil.RemoveFinalizer(one, finalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, one))
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(one, finalizer) {
		if err := r.Update(ctx, one); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.light(ctx, one); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.report(ctx, one)
}

// light runs the lamp.
func (r *reconciler) light(ctx context.Context, one *unstructured.Unstructured) error {
	lamp := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: one.GetNamespace(), Name: one.GetName()}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, lamp, func() error {
		labels := map[string]string{"beacon": one.GetName()}
		lamp.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		lamp.Spec.Template.Labels = labels
		containers := lamp.Spec.Template.Spec.Containers
		if len(containers) == 0 {
			containers = []corev1.Container{{Name: "lamp"}}
		}
		containers[0].Image = "lamp:1"
		containers[0].Env = []corev1.EnvVar{{Name: "OIL", Value: oil}}
		lamp.Spec.Template.Spec.Containers = containers
		return controllerutil.SetControllerReference(one, lamp, r.Scheme())
	})
	return err
}

// report writes the status if it has changed.
func (r *reconciler) report(ctx context.Context, one *unstructured.Unstructured) error {
	if observed, _, _ := unstructured.NestedInt64(one.Object, "status", "observedGeneration"); observed == one.GetGeneration() {
		return nil
	}
	before := one.DeepCopy()
	_ = unstructured.SetNestedField(one.Object, one.GetGeneration(), "status", "observedGeneration")
	return r.Status().Patch(ctx, one, client.MergeFrom(before))
}
