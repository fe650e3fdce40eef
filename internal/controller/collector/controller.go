// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collector maintains the addresses of the pods that a Collector selects, in its status and, if the spec
// names one, in a ConfigMap.
//
// Which pods count:
//
//   - A pod that has succeeded or failed does not: its address was released, and another pod may have it.
//   - A pod that is being deleted does until it is gone, because it may still have connections. It is no longer
//     ready, so readiness Ready excludes it.
//   - A pod in the host network does, with its node's address, which is the source of its traffic. Several pods may
//     share such an address; the list in the ConfigMap has it once.
//
// It writes at once after a change of the spec, and otherwise after a pause without further pod changes. If pods
// never stop changing, it writes after a few such pauses. The number of reconciles and their causes are written at
// the same time. Changes that do not affect the addresses are only counted, and written some seconds later.
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

// Reconciler reconciles Collectors.
type Reconciler struct {
	// Pods read all pods between them, not only those of the fleet.
	Pods  []client.Reader
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
	pods, err := podCaches(mgr, o)
	if err != nil {
		return err
	}
	r := &Reconciler{Clock: clock.RealClock{}, watchers: newWatchers(clock.RealClock{})}
	controller, reconciler, err := flow.Controller(mgr, r.Kind(), &collectorv1.Collector{}, o)
	if err != nil {
		return err
	}
	if err := flow.IndexOwned(mgr, reconciler.Name, &corev1.ConfigMap{}); err != nil {
		return err
	}
	for _, some := range pods {
		r.Pods = append(r.Pods, some)
		controller.WatchesRawSource(source.Kind(some, &corev1.Pod{}, why.TypedHandler(controller.Recording(), r.watchers.ofPods())))
	}
	return controller.
		Watches(&corev1.ConfigMap{}, reconciler.Owner(mgr, nil), builder.WithPredicates(reconciler.IgnoreOwnWrites())).
		Watches(&collectorv1.Collector{}, r.watchers.ofThemselves()).
		Complete(reconciler)
}

// scope holds the facts about a Collector during a reconcile.
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
