// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// minorNews holds back events that can change nothing but numbers in the status. Those are written every MinorInterval at
// most, so there is no use in looking more often; and whoever looks for another reason meanwhile sees them as well.
type minorNews struct {
	mutex  sync.Mutex
	timers map[types.NamespacedName]*time.Timer
}

func (m *minorNews) arrived(key types.NamespacedName, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.timers == nil {
		m.timers = map[types.NamespacedName]*time.Timer{}
	}
	if m.timers[key] != nil {
		return
	}
	m.timers[key] = time.AfterFunc(MinorInterval, func() {
		m.seen(key)
		queue.Add(reconcile.Request{NamespacedName: key})
	})
}

// seen is called before the object is looked at.
func (m *minorNews) seen(key types.NamespacedName) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if timer := m.timers[key]; timer != nil {
		timer.Stop()
		delete(m.timers, key)
	}
}

// Owner wakes the owner of a child, at once if the change matters, and within MinorInterval if not; without a function to
// tell, every change matters. A new child and one that is gone always do. What may be our own write waits for its answer.
func (r *Reconciler[T]) Owner(mgr ctrl.Manager, matters func(before, after client.Object) bool) handler.EventHandler {
	now := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), newObject[T](), handler.OnlyControllerOwner())
	unlessOwn := func(child client.Object, handle func()) {
		if !r.own.postpone(child, handle) {
			handle()
		}
	}
	return handler.Funcs{
		DeleteFunc: now.Delete, GenericFunc: now.Generic,
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			unlessOwn(e.Object, func() { now.Create(ctx, e, queue) })
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if matters != nil && !matters(e.ObjectOld, e.ObjectNew) {
				now.Update(ctx, e, &minorQueue{TypedRateLimitingInterface: queue, news: &r.minor})
				return
			}
			unlessOwn(e.ObjectNew, func() { now.Update(ctx, e, queue) })
		},
	}
}

// minorQueue lets the handler that knows the owners put them where they can wait.
type minorQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	news *minorNews
}

// Add implements workqueue.TypedInterface.
func (q *minorQueue) Add(request reconcile.Request) {
	q.news.arrived(request.NamespacedName, q.TypedRateLimitingInterface)
}
