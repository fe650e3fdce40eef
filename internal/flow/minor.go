// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
)

// minorNews delays events that can change only numbers in the status. These are written at most every
// MinorInterval, so more reconciles are useless, and a reconcile for another reason includes them.
type minorNews struct {
	mutex   sync.Mutex
	waiting map[types.NamespacedName]*minor
}

// minor is an object with delayed events.
type minor struct {
	timer *time.Timer
	// queue is the queue of the last event: each event has its own if it is recorded.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (m *minorNews) arrived(key types.NamespacedName, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	// This event is a cause of the next reconcile, whatever triggers it.
	why.Note(queue, reconcile.Request{NamespacedName: key})
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.waiting == nil {
		m.waiting = map[types.NamespacedName]*minor{}
	}
	if news := m.waiting[key]; news != nil {
		news.queue = queue
		return
	}
	m.waiting[key] = &minor{queue: queue, timer: time.AfterFunc(MinorInterval, func() {
		if news := m.take(key); news != nil {
			news.queue.Add(reconcile.Request{NamespacedName: key})
		}
	})}
}

// seen is called before the object is reconciled.
func (m *minorNews) seen(key types.NamespacedName) {
	if news := m.take(key); news != nil {
		news.timer.Stop()
	}
}

// take returns what there is, nil if there is nothing, and forgets it.
func (m *minorNews) take(key types.NamespacedName) *minor {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	news := m.waiting[key]
	delete(m.waiting, key)
	return news
}

// Owner triggers the owner of a child: at once if the change matters, and within MinorInterval
// otherwise. Without a function that decides, every change matters. New and deleted children always
// matter. An event that may be our own write waits for the response.
func (r *Reconciler[T]) Owner(mgr ctrl.Manager, matters func(before, after client.Object) bool) handler.EventHandler {
	now := handler.EnqueueRequestsFromMapFunc(controllerOf(newObject[T](), mgr.GetScheme()))
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

// controllerOf maps a child to the object that controls it, if that has the owner's type.
// handler.EnqueueRequestForOwner does the same, but asks the REST mapper for each event whether the
// owner is namespaced, which all kinds of the fleet are. That was an eighth of all allocations of the
// manager.
func controllerOf(owner client.Object, scheme *runtime.Scheme) handler.MapFunc {
	gvk, err := apiutil.GVKForObject(owner, scheme)
	return func(ctx context.Context, child client.Object) []reconcile.Request {
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot find the owner of a child")
			return nil
		}
		controller := metav1.GetControllerOfNoCopy(child)
		if controller == nil || controller.Kind != gvk.Kind {
			return nil
		}
		// The version may be another one that the kind is served in.
		if group, _, _ := strings.Cut(controller.APIVersion, "/"); group != gvk.Group {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: child.GetNamespace(), Name: controller.Name}}}
	}
}

// minorQueue passes the owners that a handler finds to minorNews.
type minorQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	news *minorNews
}

// Add implements workqueue.TypedInterface.
func (q *minorQueue) Add(request reconcile.Request) {
	q.news.arrived(request.NamespacedName, q.TypedRateLimitingInterface)
}
