// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collector keeps, in the status of a Collector and in a ConfigMap if it asks for one, the addresses of the pods
// that its selector picks.
//
// Which pods count:
//
//   - A pod that has succeeded or failed does not: its address has been released, and may be another pod's by now.
//   - A pod that is being deleted does until it is gone, since it may still talk to others. It is not ready any more, so
//     readiness Ready leaves it out.
//   - A pod in the host network does, with its node's address: that is where its traffic comes from. Several pods may
//     share such an address; in the ConfigMap's list of addresses it stands once.
//
// When it writes: at once after a change of the spec, and after a pause without further changes of the pods otherwise. If
// they never stop changing, it writes after a few such pauses. How often it was woken, and by what, is written along with
// that; changes that leave the addresses as they are, only count, and are written some seconds later.
package collector

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/why"
)

// Reconciler looks after Collectors.
type Reconciler struct {
	// Pods reads all pods, not only those of the fleet.
	Pods  client.Reader
	Clock clock.PassiveClock

	watchers *watchers
}

// Kind describes Collectors to the flow.
func (r *Reconciler) Kind() flow.Kind[*collectorv1.Collector] {
	return flow.Kind[*collectorv1.Collector]{
		Name: "Collector",
		View: func(c *collectorv1.Collector) flow.View {
			return flow.View{Suspended: c.Spec.Suspend, ObservedGeneration: &c.Status.ObservedGeneration, Conditions: &c.Status.Conditions}
		},
		Reconcile: r.reconcile,
		Paced:     true,
	}
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o flow.Options) error {
	pods, err := podCache(mgr, o)
	if err != nil {
		return err
	}
	r := &Reconciler{Pods: pods, Clock: clock.RealClock{}, watchers: newWatchers(clock.RealClock{})}
	controller, reconciler, err := flow.Controller(mgr, r.Kind(), &collectorv1.Collector{}, o)
	if err != nil {
		return err
	}
	if err := flow.IndexOwned(mgr, &corev1.ConfigMap{}); err != nil {
		return err
	}
	return controller.
		Watches(&corev1.ConfigMap{}, reconciler.Owner(mgr, nil), builder.WithPredicates(reconciler.IgnoreOwnWrites())).
		Watches(&collectorv1.Collector{}, r.watchers.ofThemselves()).
		WatchesRawSource(source.Kind(pods, &corev1.Pod{}, why.TypedHandler(controller.Recording(), r.watchers.ofPods()))).
		Complete(reconciler)
}

// scope is what is known about a Collector during a pass.
type scope struct {
	collector *collectorv1.Collector
	pass      *flow.Pass

	watcher   *watcher              // set by watch
	selector  labels.Selector       // set by watch
	addresses []collectorv1.Address // set by collect: all of them, sorted
	configMap string                // set by writeOutput: the one that holds all of them now
	output    map[string]string     // set by writeOutput: what that holds, if it is the one that the spec names
}

func (r *Reconciler) reconcile(ctx context.Context, pass *flow.Pass, collector *collectorv1.Collector) error {
	s := &scope{collector: collector, pass: pass}
	if err := flow.Run(ctx, s,
		r.watch,
		r.awaitPause,
		r.collect,
	); err != nil {
		return err
	}
	return r.report(s, r.writeOutput(ctx, s))
}
