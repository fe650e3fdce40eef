// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
)

// floodObjects is more than the number of objects a recorder keeps records of.
const floodObjects = 5_000

// floodResult is the heap of a process whose recorder receives more events than it can keep.
type floodResult struct {
	took                 time.Duration
	events               int
	before, early, after uint64
	summary              why.Summary
}

func (r floodResult) growth() float64 {
	return float64(r.after) / float64(max(1, r.early))
}

// measureFlood sends events as fast as they can be recorded, while a client requests the stream and does not read it.
func measureFlood(ctx context.Context, lasting time.Duration) (result floodResult, err error) {
	say("Recorder: sustained load for %s", lasting)
	recorder := why.New(why.Options{})
	stop, err := openUnreadStream(ctx, recorder)
	if err != nil {
		return result, err
	}
	defer stop()
	c := recorder.Controller("flood", &appsv1.Deployment{})
	h, r := c.Handler(&handler.EnqueueRequestForObject{}), c.Reconciler(noopReconciler)
	result.before = heap()
	began := time.Now()
	for time.Since(began) < lasting && ctx.Err() == nil {
		index := result.events % floodObjects
		old, now := deploymentVersion(index, result.events), deploymentVersion(index, result.events+1)
		h.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: now}, discardQueue)
		// Many events are folded into the next one of the same object. A tenth of the objects is never reconciled.
		if result.events%3 == 0 && index%10 != 0 {
			if _, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(now)}); err != nil {
				return result, err
			}
		}
		result.events++
		if result.early == 0 && time.Since(began) > lasting/10 {
			result.early = heap()
		}
	}
	result.took, result.after, result.summary = time.Since(began), heap(), recorder.Summary()
	return result, ctx.Err()
}

// heap returns the heap in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// openUnreadStream requests a stream of records and does not read it.
func openUnreadStream(ctx context.Context, r *why.Recorder) (stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: r.HTTPHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	if err != nil {
		server.Close()
		return nil, err
	}
	_, err = fmt.Fprint(connection, "GET /why/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
	return func() { connection.Close(); server.Close() }, err
}

func writeFlood(p printer, r floodResult) {
	p("\nSustained load: %d events of %d objects in %s, %.0f per second, with a client that requested the records and does not read them.\n",
		r.events, floodObjects, r.took.Round(time.Second), float64(r.events)/r.took.Seconds())
	p("| heap in use | |")
	p("|---|---:|")
	p("| before | %.1f MB |", float64(r.before)/1e6)
	p("| after a tenth of the time | %.1f MB |", float64(r.early)/1e6)
	p("| at the end | %.1f MB |", float64(r.after)/1e6)
	p("| of which retained records | %d, %.1f MB |", r.summary.Kept.Records, float64(r.summary.Kept.Bytes)/1e6)
	p("| records evicted for newer ones | %d |", r.summary.Dropped.Records)
}
