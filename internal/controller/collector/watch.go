// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/internal/flow"
)

// ReasonInvalidSelector means that the selector does not make sense.
const ReasonInvalidSelector = "InvalidSelector"

// defaultDebounce is the default of the schema, for older objects without the field.
const defaultDebounce = 500

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// watch makes events of the selected pods trigger a reconcile of the Collector. It is called
// before the pods are listed, so a pod that changes in between is not missed.
func (r *Reconciler) watch(_ context.Context, s *scope) error {
	selector, err := metav1.LabelSelectorAsSelector(&s.collector.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
		err = flow.Stalled(ReasonInvalidSelector, fmt.Errorf("spec.selector: %w", err))
	}
	r.watchers.mutex.Lock()
	defer r.watchers.mutex.Unlock()
	s.selector, s.watcher = selector, r.watchers.of(s.collector)
	s.watcher.selector = selector
	s.watcher.debounce = time.Duration(ptr.Deref(s.collector.Spec.DebounceMilliseconds, defaultDebounce)) * time.Millisecond
	if !s.watcher.begun {
		s.watcher.begun = true
		s.watcher.counts.add(s.collector.Status.Events)
		s.watcher.reconciles = s.collector.Status.Reconciles
	}
	return err
}

// awaitPause holds the pass as long as pods go on changing. A new spec does not wait, and neither does a ConfigMap that was
// changed: it gets back the list of the last pass.
func (r *Reconciler) awaitPause(ctx context.Context, s *scope) error {
	r.watchers.mutex.Lock()
	pause, output := s.watcher.pause(r.Clock.Now()), s.watcher.output
	if s.watcher.generation != s.collector.Generation {
		pause = 0
	}
	r.watchers.mutex.Unlock()
	if pause > 0 {
		if err := r.restoreOutput(ctx, s, output); err != nil {
			return flow.Within(pause, err)
		}
		return flow.Hold(pause)
	}
	r.watchers.mutex.Lock()
	defer r.watchers.mutex.Unlock()
	s.watcher.generation = s.collector.Generation
	s.watcher.first, s.watcher.last = time.Time{}, time.Time{}
	s.watcher.reconciles++
	return nil
}

// ofPods wakes Collectors for the pods that they pick, or have picked until now.
func (w *watchers) ofPods() handler.TypedFuncs[*corev1.Pod, reconcile.Request] {
	happened := func(queue queue, what collectorv1.EventType, old, now *corev1.Pod) {
		for collector, after := range w.podHappened(what, old, now) {
			queue.AddAfter(reconcile.Request{NamespacedName: collector}, after)
		}
	}
	return handler.TypedFuncs[*corev1.Pod, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Pod], queue queue) {
			// Pods of the initial list have not changed, and all Collectors are reconciled at the start
			// anyway.
			if !e.IsInInitialList {
				happened(queue, collectorv1.EventAdded, nil, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*corev1.Pod], queue queue) {
			if e.ObjectOld.ResourceVersion != e.ObjectNew.ResourceVersion {
				happened(queue, collectorv1.EventModified, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Pod], queue queue) {
			happened(queue, collectorv1.EventDeleted, e.Object, nil)
		},
	}
}

// ofThemselves counts the events of Collectors. It does not trigger reconciles.
func (w *watchers) ofThemselves() handler.Funcs {
	count := func(queue queue, what collectorv1.EventType, collector client.Object) {
		queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(collector)}, w.happened(what, collector))
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue queue) {
			if !e.IsInInitialList {
				count(queue, collectorv1.EventAdded, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue queue) {
			if e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() {
				return
			}
			if now, ok := e.ObjectNew.(*collectorv1.Collector); ok && now.Spec.Suspend {
				// A suspended Collector ignores events. It is reconciled when it is resumed.
				w.forget(now)
				return
			}
			count(queue, collectorv1.EventModified, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { w.forget(e.Object) },
	}
}
