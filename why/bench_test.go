// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

// nowhere is a queue that takes no time, and the same one for all events, as that of a controller is.
var nowhere = &none{}

type none struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (*none) Add(reconcile.Request) {}

// recorders are what benchmarks compare: no wrapping at all, wrapping by a recorder that is off, and by one that is on.
func recorders(b *testing.B, measure func(b *testing.B, c *Controller, wrap bool)) {
	b.Helper()
	b.Run("without", func(b *testing.B) { measure(b, nil, false) })
	b.Run("off", func(b *testing.B) {
		var off *Recorder
		measure(b, off.Controller("web", &appsv1.Deployment{}), true)
	})
	b.Run("on", func(b *testing.B) { measure(b, New(Options{}).Controller("web", &appsv1.Deployment{}), true) })
}

func BenchmarkEventAndReconcile(b *testing.B) {
	old, now := whytest.Web(), whytest.Web()
	now.ResourceVersion, now.Status.ReadyReplicas = "2", 1
	recorders(b, func(b *testing.B, c *Controller, wrap bool) {
		b.Helper()
		var h handler.EventHandler = &handler.EnqueueRequestForObject{}
		var r reconcile.Reconciler = &fakeReconciler{}
		if wrap {
			h, r = c.Handler(h), c.Reconciler(r)
		}
		ctx, update := context.Background(), event.UpdateEvent{ObjectOld: old, ObjectNew: now}
		b.ReportAllocs()
		for b.Loop() {
			h.Update(ctx, update, nowhere)
			if _, err := r.Reconcile(ctx, request); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEventThatLeadsToNothing(b *testing.B) {
	old, now := whytest.Web(), whytest.Web()
	now.ResourceVersion, now.Status.ReadyReplicas = "2", 1
	recorders(b, func(b *testing.B, c *Controller, wrap bool) {
		b.Helper()
		h := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return nil })
		if wrap {
			h = c.Handler(h)
		}
		ctx, update := context.Background(), event.UpdateEvent{ObjectOld: old, ObjectNew: now}
		b.ReportAllocs()
		for b.Loop() {
			h.Update(ctx, update, nowhere)
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	old, now := whytest.Web(), whytest.Web()
	now.ResourceVersion, now.Status.ReadyReplicas = "2", 1
	b.ReportAllocs()
	for b.Loop() {
		testDiffer.Compare(old, now, false)
	}
}
