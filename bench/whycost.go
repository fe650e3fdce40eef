// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
)

// whyCost is what a single event that leads to a reconcile costs.
type whyCost struct{ without, off, on testing.BenchmarkResult }

func (c whyCost) offRatio() float64 {
	return float64(c.off.NsPerOp()) / float64(max(1, c.without.NsPerOp()))
}

// share is that of recording in the time of a reconcile at the load of a run. An event costs nearly all of what an event and
// a reconcile cost, so counting that once per event counts a little too much.
func (c whyCost) share(run whyRun) float64 {
	events := float64(run.summary.Reconciles+run.summary.Folded) / float64(max(1, run.summary.Reconciles))
	return events * float64(c.on.NsPerOp()-c.without.NsPerOp()) / float64(max(1, run.summary.MeanDuration))
}

func measureCost() whyCost {
	say("An event and a reconcile, without a recorder, with one that is off, and with one that is on")
	var (
		off  *why.Recorder
		best whyCost
	)
	// In turn, and the best of each: what else the machine does can only make them slower.
	for range 5 {
		best.without = faster(best.without, benchmarkWhy(&handler.EnqueueRequestForObject{}, nothingToDo))
		best.off = faster(best.off, benchmarkRecorder(off))
		best.on = faster(best.on, benchmarkRecorder(why.New(why.Options{})))
	}
	return best
}

func faster(a, b testing.BenchmarkResult) testing.BenchmarkResult {
	if a.N == 0 || b.NsPerOp() < a.NsPerOp() {
		return b
	}
	return a
}

var nothingToDo = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })

// noQueue takes no time.
type noQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Add implements workqueue.TypedInterface.
func (noQueue) Add(reconcile.Request) {}

func benchmarkRecorder(r *why.Recorder) testing.BenchmarkResult {
	c := r.Controller("bench", &appsv1.Deployment{})
	return benchmarkWhy(c.Handler(&handler.EnqueueRequestForObject{}), c.Reconciler(nothingToDo))
}

func benchmarkWhy(h handler.EventHandler, r reconcile.Reconciler) testing.BenchmarkResult {
	old, now := flooded(1, 1), flooded(1, 2)
	ctx, request := context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(old)}
	return testing.Benchmark(func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			h.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: now}, noQueue{})
			if _, err := r.Reconcile(ctx, request); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// flooded is a Deployment as the fleet makes them, in one of many versions.
func flooded(index, version int) *appsv1.Deployment {
	d := children("app-" + strconv.Itoa(index))[0].(*appsv1.Deployment)
	d = d.DeepCopy()
	at := metav1.NewTime(time.Unix(int64(version), 0))
	d.UID, d.ResourceVersion = types.UID(d.Name), strconv.Itoa(version)
	d.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "opdock-appservice", Operation: metav1.ManagedFieldsOperationApply},
		{Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: &at},
	}
	d.Status = appsv1.DeploymentStatus{
		Replicas: 1, ReadyReplicas: int32(version % 2), ObservedGeneration: int64(version),
		Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: "True", LastUpdateTime: at, Message: fmt.Sprintf("version %d", version)}},
	}
	return d
}

func writeCost(p printer, c whyCost, share float64) {
	p("\n| an update of a Deployment and the reconcile it leads to | time | allocations | bytes |")
	p("|---|---:|---:|---:|")
	for _, row := range []struct {
		name   string
		result testing.BenchmarkResult
	}{{"without a recorder", c.without}, {"recorder off", c.off}, {"recorder on", c.on}} {
		p("| %s | %d ns | %d | %d |", row.name, row.result.NsPerOp(), row.result.AllocsPerOp(), row.result.AllocedBytesPerOp())
	}
	p("\nAt the load above, that is %.2f %% of the time of a reconcile.", 100*share)
}
