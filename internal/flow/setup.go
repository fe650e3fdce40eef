// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
)

// Options are the settings of a controller.
type Options struct {
	// Concurrency is the number of objects of the kind that are reconciled concurrently.
	Concurrency int
	// ReconcileTimeout bounds a single pass.
	ReconcileTimeout time.Duration
	// Namespaces are the namespaces that the manager watches; all if empty. They are for controllers with their own
	// cache.
	Namespaces []string
	// IsInstalled reports whether the server serves a kind now.
	IsInstalled func(kind schema.GroupVersionKind) (bool, error)
	// WhenInstalled calls a function once, as soon as the server serves a kind. It is for controllers that watch kinds
	// whose CRDs may come later, or never.
	WhenInstalled func(kind schema.GroupVersionKind, then func() error)
	// Recorder returns the event recorder of a controller.
	Recorder func(controller string) events.EventRecorder
	// Why records why objects are reconciled; nothing is recorded if it is nil.
	Why *why.Recorder
}

const (
	// firstRetry and lastRetry bound the pauses between attempts. The last one is how long a raised quota can go
	// unnoticed, for example.
	firstRetry = 50 * time.Millisecond
	lastRetry  = time.Minute
)

// Controller returns a builder with the settings of all kinds. The kind adds its own watches, and ends with
// Complete(reconciler).
func Controller[T client.Object](mgr ctrl.Manager, kind Kind[T], object T, o Options) (*why.Builder, *Reconciler[T], error) {
	watcher, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, nil, fmt.Errorf("creating a client for %s: %w", kind.Name, err)
	}
	name := strings.ToLower(kind.Name)
	reconciler := &Reconciler[T]{
		Kind: kind, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(),
		Events: o.Recorder("opdock-" + name), Clock: clock.RealClock{},
		bystanders: &bystanders{client: watcher},
	}
	return why.ControllerManagedBy(mgr, o.Why).
		Named(name).
		// This controller writes the status itself, so a status change triggers no reconcile, unless
		// another writer has made it.
		For(object, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, whenAskedToAdopt(), whenFinalizerIsLost(), reconciler.whenStatusIsEdited()))).
		WatchesRawSource(reconciler.bystanders).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Concurrency,
			ReconciliationTimeout:   o.ReconcileTimeout,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}), reconciler, nil
}

// whenAskedToAdopt selects updates that add or remove AdoptAnnotation.
func whenAskedToAdopt() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[AdoptAnnotation] != e.ObjectNew.GetAnnotations()[AdoptAnnotation]
		},
	}
}

// whenFinalizerIsLost selects updates by which another writer removes Finalizer, such as kubectl replace with a manifest that
// has none.
func whenFinalizerIsLost() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectNew.GetDeletionTimestamp().IsZero() &&
				controllerutil.ContainsFinalizer(e.ObjectOld, Finalizer) && !controllerutil.ContainsFinalizer(e.ObjectNew, Finalizer)
		},
	}
}

// IgnoreStatus is for children whose status does not matter: it selects changes of their spec, labels and
// annotations, and the beginning of their deletion. Not all types have a generation, but a writer that changes our fields takes their ownership. A writer that
// uses our name takes nothing, because the fields are its own already: only the time of the entry changes.
func IgnoreStatus() predicate.Predicate {
	return predicate.Or(
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
		predicate.Funcs{
			CreateFunc:  func(event.CreateEvent) bool { return false },
			DeleteFunc:  func(event.DeleteEvent) bool { return false },
			GenericFunc: func(event.GenericEvent) bool { return false },
			UpdateFunc: func(e event.UpdateEvent) bool {
				return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
					!slices.EqualFunc(wholeEntries(e.ObjectOld), wholeEntries(e.ObjectNew), sameEntry)
			},
		})
}

// wholeEntries selects our own entries, which the cache keeps with their fields.
func wholeEntries(object client.Object) (whole []metav1.ManagedFieldsEntry) {
	for _, entry := range object.GetManagedFields() {
		if entry.FieldsV1 != nil {
			whole = append(whole, entry)
		}
	}
	return whole
}

func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.Time.Equal(b.Time) && a.FieldsV1.Equal(*b.FieldsV1)
}
