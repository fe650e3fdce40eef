// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kapp creates an application from objects of the other kinds, in dependency order.
//
// A component is created, and later changed, only while all its dependencies are ready: a new version of an
// application rolls out in the same order as the first one. Meanwhile, existing objects keep their configuration; nothing
// is deleted to be recreated. Drift is corrected at any time.
//
// A component that is removed from the spec is deleted after the components that depend on it. So is every
// component when the KAPP is deleted. Foreground deletion is the exception: the garbage collector deletes all
// components at once.
package kapp

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	"github.com/opdock/opdock/internal/flow"
)

const kindName = "KAPP"

// Reconciler reconciles KAPPs.
type Reconciler struct {
	kinds []*componentKind
}

// Kind describes KAPPs to the flow.
func (r *Reconciler) Kind() flow.Kind[*kappv1.KAPP] {
	return flow.Kind[*kappv1.KAPP]{
		Name: kindName,
		View: func(kapp *kappv1.KAPP) flow.View {
			return flow.View{
				Suspended: kapp.Spec.Suspend, ObservedGeneration: &kapp.Status.ObservedGeneration, Conditions: &kapp.Status.Conditions,
			}
		},
		Reconcile: r.reconcile,
		Finalize:  r.finalize,
		CachesAll: true,
	}
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, o flow.Options) error {
	r := &Reconciler{kinds: componentKinds()}
	builder, reconciler, err := flow.Controller(mgr, r.Kind(), &kappv1.KAPP{}, o)
	if err != nil {
		return err
	}
	w := &watcher{manager: mgr, ignoreOwnWrites: reconciler.IgnoreOwnWrites(), recording: builder.Recording(), isInstalled: o.IsInstalled}
	// In a running manager, the controller starts as soon as it is built. Its first reconcile must not miss an
	// installed kind, so kinds are checked before.
	missing, err := w.watchInstalled(builder, r.kinds)
	if err != nil {
		return err
	}
	controller, err := builder.Build(reconciler)
	if err != nil {
		return err
	}
	for _, kind := range missing {
		o.WhenInstalled(kind.GroupVersionKind, func() error { return w.watchLate(controller, kind) })
	}
	return nil
}

// scope holds the facts about a KAPP during a reconcile.
type scope struct {
	kapp *kappv1.KAPP
	pass *flow.Pass

	parts  []*part  // set by plan, in the order of their dependencies
	owned  []owned  // set by findOwned
	doomed []doomed // set by prune and finalize
}

func (r *Reconciler) reconcile(ctx context.Context, pass *flow.Pass, kapp *kappv1.KAPP) error {
	s := &scope{kapp: kapp, pass: pass}
	err := flow.Run(ctx, s,
		r.plan,
		r.applyComponents,
		r.findOwned,
		r.prune,
	)
	setStatus(s)
	if err != nil {
		return err
	}
	return verdict(s)
}
