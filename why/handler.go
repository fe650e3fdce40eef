// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Handler wraps the handler of a watch and records which event triggered which reconcile.
func (c *Controller) Handler(h handler.EventHandler) handler.EventHandler { return TypedHandler(c, h) }

// TypedHandler is Controller.Handler for handlers and queues of any type. The objects of its
// events must not be modified afterwards, as is true for all objects from a cache: they are
// compared later, see Options.MaxUncompared.
func TypedHandler[object any, request comparable](c *Controller, h handler.TypedEventHandler[object, request]) handler.TypedEventHandler[object, request] {
	if c == nil {
		return h
	}
	return &typedHandler[object, request]{controller: c, inner: h}
}

type typedHandler[object any, request comparable] struct {
	controller *Controller
	inner      handler.TypedEventHandler[object, request]
	// counted is whether the events were counted before predicates dropped some of them.
	counted bool
	// last is the queue of the last event. It is also the queue of the next event, unless a handler is used for two
	// queues.
	last atomic.Pointer[knownQueue[request]]
}

// knownQueue caches whether a queue is a priority queue; priority is nil if it is not.
type knownQueue[request comparable] struct {
	queue    workqueue.TypedRateLimitingInterface[request]
	priority priorityqueue.PriorityQueue[request]
}

// Create implements handler.TypedEventHandler.
func (h *typedHandler[object, request]) Create(ctx context.Context, e event.TypedCreateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	what := Created
	if e.IsInInitialList {
		what = Listed
	}
	h.inner.Create(ctx, e, h.queueFor(what, nil, e.Object, q))
}

// Update implements handler.TypedEventHandler.
func (h *typedHandler[object, request]) Update(ctx context.Context, e event.TypedUpdateEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	h.inner.Update(ctx, e, h.queueFor(Updated, e.ObjectOld, e.ObjectNew, q))
}

// Delete implements handler.TypedEventHandler.
func (h *typedHandler[object, request]) Delete(ctx context.Context, e event.TypedDeleteEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	h.inner.Delete(ctx, e, h.queueFor(Deleted, nil, e.Object, q))
}

// Generic implements handler.TypedEventHandler.
func (h *typedHandler[object, request]) Generic(ctx context.Context, e event.TypedGenericEvent[object], q workqueue.TypedRateLimitingInterface[request]) {
	h.inner.Generic(ctx, e, h.queueFor(Generic, nil, e.Object, q))
}

// asObject returns the object of an event, if there is one that has metadata.
func asObject(object any) (client.Object, bool) {
	o, ok := object.(client.Object)
	if !ok {
		return nil, false
	}
	if v := reflect.ValueOf(o); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	return o, true
}

// queueFor returns a queue that attributes requests to an event. Handlers check for a priority
// queue, so it is one if the inner queue is.
func (h *typedHandler[object, request]) queueFor(what CauseType, old, now any, inner workqueue.TypedRateLimitingInterface[request]) workqueue.TypedRateLimitingInterface[request] {
	if !h.counted {
		h.controller.seen.Add(1)
	}
	known := h.last.Load()
	if known == nil || known.queue != inner {
		known = h.know(inner)
	}
	if known.priority != nil {
		return &priorityQueue[request]{PriorityQueue: known.priority, trigger: h.controller.happened(what, old, now)}
	}
	return &classicQueue[request]{TypedRateLimitingInterface: inner, trigger: h.controller.happened(what, old, now)}
}

// know determines the type of the queue, and caches it.
func (h *typedHandler[object, request]) know(inner workqueue.TypedRateLimitingInterface[request]) *knownQueue[request] {
	known := &knownQueue[request]{queue: inner}
	isOfEvent := false // by a handler around this one
	switch q := inner.(type) {
	case *priorityQueue[request]:
		// A source records every request to its queue, but an event has more details.
		if isOfEvent = !q.ofSource; !isOfEvent {
			inner = q.PriorityQueue
		}
	case *classicQueue[request]:
		isOfEvent = true
	}
	known.priority, _ = inner.(priorityqueue.PriorityQueue[request])
	// Queues that are no pointers may not even be comparable.
	if t := reflect.TypeOf(known.queue); !isOfEvent && t != nil && t.Kind() == reflect.Pointer {
		h.last.Store(known)
	}
	return known
}

type priorityQueue[request comparable] struct {
	priorityqueue.PriorityQueue[request]
	trigger
}

func (q *priorityQueue[request]) note(item request, after time.Duration) {
	q.leadsTo(keyOf(item), after)
}

// Add implements workqueue.TypedInterface.
func (q *priorityQueue[request]) Add(item request) {
	q.note(item, 0)
	q.PriorityQueue.Add(item)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *priorityQueue[request]) AddAfter(item request, after time.Duration) {
	q.note(item, after)
	q.PriorityQueue.AddAfter(item, after)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *priorityQueue[request]) AddRateLimited(item request) {
	q.note(item, unknownDelay)
	q.PriorityQueue.AddRateLimited(item)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *priorityQueue[request]) AddWithOpts(o priorityqueue.AddOpts, items ...request) {
	after := o.After
	if o.RateLimited && after == 0 {
		after = unknownDelay
	}
	for _, item := range items {
		q.note(item, after)
	}
	q.PriorityQueue.AddWithOpts(o, items...)
}

type classicQueue[request comparable] struct {
	workqueue.TypedRateLimitingInterface[request]
	trigger
}

func (q *classicQueue[request]) note(item request, after time.Duration) {
	q.leadsTo(keyOf(item), after)
}

// Add implements workqueue.TypedInterface.
func (q *classicQueue[request]) Add(item request) {
	q.note(item, 0)
	q.TypedRateLimitingInterface.Add(item)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *classicQueue[request]) AddAfter(item request, after time.Duration) {
	q.note(item, after)
	q.TypedRateLimitingInterface.AddAfter(item, after)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *classicQueue[request]) AddRateLimited(item request) {
	q.note(item, unknownDelay)
	q.TypedRateLimitingInterface.AddRateLimited(item)
}

var (
	_ handler.EventHandler                                    = &typedHandler[client.Object, reconcile.Request]{}
	_ priorityqueue.PriorityQueue[reconcile.Request]          = &priorityQueue[reconcile.Request]{}
	_ workqueue.TypedRateLimitingInterface[reconcile.Request] = &classicQueue[reconcile.Request]{}
)
