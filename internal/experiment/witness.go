// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/workload"
	"github.com/opdock/opdock/why"
)

// witnessName is the name of a controller that gets the same events as the AppService controller, before any
// predicate, and does nothing.
const witnessName = "witness"

// setUpWitness adds the witness to a manager. It watches only the kinds of children that this AppService has.
func setUpWitness(mgr ctrl.Manager, recorder *why.Recorder) error {
	return why.ControllerManagedBy(mgr, recorder).Named(witnessName).
		For(&appv1.AppService{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Pod{}, workload.ToInstance("appservice")).
		Complete(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil }))
}
