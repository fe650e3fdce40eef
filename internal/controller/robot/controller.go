// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package robot turns a Robot into a Deployment of workers, and moves them when the Deployment gets another name.
package robot

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
	"github.com/opdock/opdock/internal/workload"
)

// labelKind is the value of the label with the kind of an object's owner.
const labelKind = "robot"

// Reconciler reconciles Robots.
type Reconciler struct {
	Client client.Client
}

// Kind describes Robots to the flow.
func (r *Reconciler) Kind() flow.Kind[*robotv1.Robot] {
	return flow.Kind[*robotv1.Robot]{
		Name: "Robot",
		View: func(robot *robotv1.Robot) flow.View {
			return flow.View{
				Suspended: robot.Spec.Suspend, ObservedGeneration: &robot.Status.ObservedGeneration, Conditions: &robot.Status.Conditions,
			}
		},
		Reconcile: r.reconcile,
	}
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o flow.Options) error {
	r := &Reconciler{Client: mgr.GetClient()}
	controller, reconciler, err := flow.Controller(mgr, r.Kind(), &robotv1.Robot{}, o)
	if err != nil {
		return err
	}
	if err := flow.IndexOwned(mgr, reconciler.Name, &appsv1.Deployment{}); err != nil {
		return err
	}
	return controller.
		Watches(&appsv1.Deployment{}, reconciler.Owner(mgr, workload.Matters), builder.WithPredicates(reconciler.IgnoreOwnWrites())).
		Watches(&corev1.Pod{}, workload.ToInstance(labelKind), workload.WhenTroubleChanges()).
		Complete(reconciler)
}

// scope holds the facts about a Robot during a reconcile.
type scope struct {
	robot *robotv1.Robot
	pass  *flow.Pass

	deployment   *appsv1.Deployment  // set by findDeployments if it exists, and again by applyDeployment
	predecessors []appsv1.Deployment // set by findDeployments: those with a name other than the one in the spec
	trouble      *health.Trouble     // set by findTrouble; nil if all is well
}

func (r *Reconciler) reconcile(ctx context.Context, pass *flow.Pass, robot *robotv1.Robot) error {
	s := &scope{robot: robot, pass: pass}
	if err := r.findDeployments(ctx, s); err != nil {
		return err
	}
	err := flow.Run(ctx, s,
		r.removeOvertaken,
		r.applyDeployment,
		r.findTrouble,
		r.awaitRollout,
		r.removePredecessors,
	)
	setStatus(s)
	return err
}

func (r *Reconciler) findTrouble(ctx context.Context, s *scope) (err error) {
	s.trouble, err = health.TroubleOfDeployment(ctx, r.Client, s.deployment)
	return err
}

func (r *Reconciler) awaitRollout(_ context.Context, s *scope) error {
	return workload.Outcome(s.deployment, s.trouble)
}
