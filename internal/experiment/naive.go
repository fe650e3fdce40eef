// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
)

// Watching describes what a naive controller watches. The learner's notes do not say what theirs watched, so several
// controllers observe the same changes at the same time.
type Watching struct {
	// Name is the name of the controller. Title describes it in tables.
	Name, Title string

	replicaSets, pods bool
}

// Watchings are the naive controllers. The learner's numbers fit the first one.
var Watchings = []Watching{
	{Name: "deployments", Title: "Deployments"},
	{Name: "replicasets", Title: "Deployments and ReplicaSets", replicaSets: true},
	{Name: "pods", Title: "Deployments, ReplicaSets and pods", replicaSets: true, pods: true},
}

// naive is a reconciler as in a tutorial: each event calls it, it reads everything, and it writes the result even if
// nothing changed. The result is the addresses of pods, because the learner's kind collected them.
type naive struct {
	client.Client
	watching Watching
}

// setUp adds the controller to a manager, without a predicate.
func (n *naive) setUp(mgr ctrl.Manager, recorder *why.Recorder) error {
	n.Client = recorder.Client(mgr.GetClient())
	builder := why.ControllerManagedBy(mgr, recorder).Named(n.watching.Name).For(&appsv1.Deployment{})
	if n.watching.replicaSets {
		builder.Owns(&appsv1.ReplicaSet{})
	}
	if n.watching.pods {
		builder.Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, pod client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()["app"]}}}
		}))
	}
	return builder.Complete(n)
}

// Reconcile implements reconcile.Reconciler.
func (n *naive) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := n.Get(ctx, request.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var pods corev1.PodList
	if err := n.List(ctx, &pods, client.InNamespace(request.Namespace), client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing pods: %w", err)
	}
	var addresses []string
	for i := range pods.Items {
		if ip := pods.Items[i].Status.PodIP; ip != "" {
			addresses = append(addresses, ip)
		}
	}
	found := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name + "-" + n.watching.Name},
		Data:       map[string]string{"addresses": strings.Join(addresses, "\n")},
	}
	err := n.Update(ctx, found)
	if apierrors.IsNotFound(err) {
		err = n.Create(ctx, found)
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the addresses: %w", err)
	}
	return ctrl.Result{}, nil
}

func setUpNaive(mgr ctrl.Manager, recorder *why.Recorder) error {
	var errs []error
	for _, watching := range Watchings {
		errs = append(errs, (&naive{watching: watching}).setUp(mgr, recorder))
	}
	return errors.Join(errs...)
}
