// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package appservice creates the Deployment, the Service and the other children of an AppService.
package appservice

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
	"github.com/opdock/opdock/internal/workload"
)

// labelKind is the value of the label with the kind of an object's owner.
const labelKind = "appservice"

// Reconciler reconciles AppServices.
type Reconciler struct {
	Client client.Client
}

// Kind describes AppServices to the flow.
func (r *Reconciler) Kind() flow.Kind[*appv1.AppService] {
	return flow.Kind[*appv1.AppService]{
		Name: "AppService",
		View: func(app *appv1.AppService) flow.View {
			return flow.View{
				Suspended: app.Spec.Suspend, ObservedGeneration: &app.Status.ObservedGeneration, Conditions: &app.Status.Conditions,
			}
		},
		Reconcile: r.reconcile,
	}
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o flow.Options) error {
	r := &Reconciler{Client: mgr.GetClient()}
	controller, reconciler, err := flow.Controller(mgr, r.Kind(), &appv1.AppService{}, o)
	if err != nil {
		return err
	}
	news := builder.WithPredicates(reconciler.IgnoreOwnWrites())
	specNews := builder.WithPredicates(reconciler.IgnoreOwnWrites(), flow.IgnoreStatus())
	return controller.
		Watches(&appsv1.Deployment{}, reconciler.Owner(mgr, workload.Matters), news).
		Watches(&corev1.Service{}, reconciler.Owner(mgr, nil), news).
		Watches(&networkingv1.Ingress{}, reconciler.Owner(mgr, nil), news).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, reconciler.Owner(mgr, nil), specNews).
		Watches(&networkingv1.NetworkPolicy{}, reconciler.Owner(mgr, nil), specNews).
		Watches(&policyv1.PodDisruptionBudget{}, reconciler.Owner(mgr, nil), specNews).
		Watches(&corev1.Pod{}, workload.ToInstance(labelKind), workload.WhenTroubleChanges()).
		Complete(reconciler)
}

// scope holds the facts about an AppService during a reconcile.
type scope struct {
	app  *appv1.AppService
	pass *flow.Pass

	deployment *appsv1.Deployment    // set by applyDeployment
	service    *corev1.Service       // set by applyService; nil if there is none
	ingress    *networkingv1.Ingress // set by applyIngress; nil if there is none
	trouble    *health.Trouble       // set by findTrouble; nil if all is well
}

func (r *Reconciler) reconcile(ctx context.Context, pass *flow.Pass, app *appv1.AppService) error {
	s := &scope{app: app, pass: pass}
	// None of these needs another, so a name that is taken for one does not hold up the rest.
	err := flow.RunAll(ctx, s,
		r.applyDeployment,
		r.applyService,
		r.applyAutoscaler,
		r.applyIngress,
		r.applyDisruptionBudget,
		r.applyNetworkPolicy,
		r.findTrouble,
		r.awaitRollout,
	)
	setStatus(s)
	return err
}

// keepIf applies a child if it is wanted, and deletes it if not.
func keepIf(ctx context.Context, s *scope, wanted bool, object client.Object, configuration func() any) error {
	if wanted {
		return s.pass.Apply(ctx, object, configuration())
	}
	object.SetName(s.app.Name)
	return s.pass.Remove(ctx, object)
}

// selector are the labels of the application's pods. A Deployment's selector cannot be changed, so neither can this.
func selector(app *appv1.AppService) map[string]string {
	return workload.SelectorLabels(labelKind, app.Name)
}

// findTrouble finds a pod that cannot start, if the rollout suggests one.
func (r *Reconciler) findTrouble(ctx context.Context, s *scope) (err error) {
	if s.deployment != nil {
		s.trouble, err = health.TroubleOfDeployment(ctx, r.Client, s.deployment)
	}
	return err
}

func (r *Reconciler) awaitRollout(_ context.Context, s *scope) error {
	if s.deployment == nil {
		return nil
	}
	return workload.Outcome(s.deployment, s.trouble)
}
