// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/why"
)

// watcher watches the kinds of components, each as soon as the server serves it.
type watcher struct {
	manager         ctrl.Manager
	ignoreOwnWrites predicate.Predicate
	recording       *why.Controller
	isInstalled     func(schema.GroupVersionKind) (bool, error)
}

// watchInstalled adds watches of the installed kinds to a builder, and returns the other kinds.
func (w *watcher) watchInstalled(builder *why.Builder, kinds []*componentKind) (missing []*componentKind, err error) {
	for _, kind := range kinds {
		installed, err := w.isInstalled(kind.GroupVersionKind)
		switch {
		case err != nil:
			return nil, fmt.Errorf("asking for %s: %w", kind.Kind, err)
		case !installed:
			missing = append(missing, kind)
			continue
		}
		if err := flow.IndexOwned(w.manager, kindName, kind.new()); err != nil {
			return nil, err
		}
		builder.WatchesRawSource(w.components(kind))
		kind.installed.Store(true)
	}
	return missing, nil
}

// watchLate adds a watch of a kind that was just installed, and reconciles the KAPPs that waited for it.
func (w *watcher) watchLate(controller controller.Controller, kind *componentKind) error {
	if err := flow.IndexOwned(w.manager, kindName, kind.new()); err != nil {
		return err
	}
	if err := controller.Watch(w.components(kind)); err != nil {
		return fmt.Errorf("watching %s: %w", kind.Kind, err)
	}
	kind.installed.Store(true)
	return controller.Watch(why.Source(w.recording, w.waitingFor(kind)))
}

// components are the objects of a kind that belong to KAPPs.
func (w *watcher) components(kind *componentKind) source.Source {
	toOwner := handler.EnqueueRequestForOwner(w.manager.GetScheme(), w.manager.GetRESTMapper(), &kappv1.KAPP{}, handler.OnlyControllerOwner())
	return source.Kind(w.manager.GetCache(), kind.new(), w.recording.Handler(toOwner), w.ignoreOwnWrites, whenItMatters(kind))
}

// waitingFor wakes the KAPPs that have components of a kind that was missing so far.
func (w *watcher) waitingFor(kind *componentKind) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		var kapps kappv1.KAPPList
		if err := w.manager.GetClient().List(ctx, &kapps); err != nil {
			return fmt.Errorf("listing the KAPPs that wait for %s: %w", kind.Kind, err)
		}
		for i := range kapps.Items {
			if slices.ContainsFunc(kapps.Items[i].Spec.Components, kind.isOf) {
				queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&kapps.Items[i])})
			}
		}
		return nil
	})
}

// isOf reports whether a component is of the kind.
func (k *componentKind) isOf(component kappv1.Component) bool {
	var object metav1.TypeMeta
	return json.Unmarshal(component.Resource.Raw, &object) == nil && k.is(schema.FromAPIVersionAndKind(object.APIVersion, object.Kind))
}

// whenItMatters drops changes that do not affect a KAPP, such as counters, which change with every pod of a
// component.
func whenItMatters(kind *componentKind) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld, e.ObjectNew
		return was.GetGeneration() != is.GetGeneration() ||
			was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) ||
			!equality.Semantic.DeepEqual(was.GetAnnotations(), is.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(was.GetOwnerReferences(), is.GetOwnerReferences()) ||
			!sameConditions(kind.conditions(was), kind.conditions(is))
	}}
}

// sameConditions compares what assess reads.
func sameConditions(a, b []metav1.Condition) bool {
	for _, conditionType := range []string{sharedv1.ConditionReady, sharedv1.ConditionStalled} {
		one, other := meta.FindStatusCondition(a, conditionType), meta.FindStatusCondition(b, conditionType)
		if (one == nil) != (other == nil) {
			return false
		}
		if one != nil && (one.Status != other.Status || one.Reason != other.Reason || one.Message != other.Message ||
			one.ObservedGeneration != other.ObservedGeneration) {
			return false
		}
	}
	return true
}
