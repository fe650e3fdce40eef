// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
)

// whyCost is the cost of a single event and its reconcile. The CPU time includes garbage collection.
type whyCost struct {
	without, off, on     []testing.BenchmarkResult
	huge                 testing.BenchmarkResult // recorded, for an object with perThousand of changed fields
	withoutCPU, recorded []time.Duration
}

func (c whyCost) offRatio() float64 {
	return ratio(median(perThousand(c.off)), median(perThousand(c.without)))
}

// perThousand returns the time of a thousand operations, because single ones take only a few nanoseconds.
func perThousand(results []testing.BenchmarkResult) []time.Duration {
	took := make([]time.Duration, len(results))
	for i, one := range results {
		took[i] = time.Duration(1000 * float64(one.T) / float64(one.N))
	}
	return took
}

func measureCost(runs int) (cost whyCost) {
	say("Recorder: an event and its reconcile, without a recorder, with the recorder off, and with the recorder on")
	var off *why.Recorder
	measureWithout := func() {
		cost.without = append(cost.without, benchmarkWhy(&handler.EnqueueRequestForObject{}, noopReconciler, deploymentVersion(1, 1), deploymentVersion(1, 2)))
	}
	measureOff := func() { cost.off = append(cost.off, benchmarkRecorder(off)) }
	for round := range 2 * runs {
		// They take turns at being first.
		if round%2 == 0 {
			measureWithout()
			measureOff()
		} else {
			measureOff()
			measureWithout()
		}
		cost.on = append(cost.on, benchmarkRecorder(why.New(why.Options{})))
		cost.withoutCPU = append(cost.withoutCPU, cpuOfEach(&handler.EnqueueRequestForObject{}, noopReconciler))
		recording := why.New(why.Options{}).Controller("bench", &appsv1.Deployment{})
		cost.recorded = append(cost.recorded, cpuOfEach(recording.Handler(&handler.EnqueueRequestForObject{}), recording.Reconciler(noopReconciler)))
	}
	recording := why.New(why.Options{}).Controller("bench", &appsv1.Deployment{})
	cost.huge = benchmarkWhy(recording.Handler(&handler.EnqueueRequestForObject{}), recording.Reconciler(noopReconciler), huge(deploymentVersion(1, 1)), huge(deploymentVersion(1, 2)))
	return cost
}

// cpuOfEach returns the CPU time of this process per event and reconcile, on all cores.
func cpuOfEach(h handler.EventHandler, r reconcile.Reconciler) time.Duration {
	const many = 100_000
	old, now := deploymentVersion(1, 1), deploymentVersion(1, 2)
	ctx, request := context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(old)}
	runtime.GC()
	began := ownCPU()
	for range many {
		h.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: now}, discardQueue)
		if _, err := r.Reconcile(ctx, request); err != nil {
			panic(err) // it never fails
		}
	}
	runtime.GC()
	return (ownCPU() - began) / many
}

func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

var noopReconciler = reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return reconcile.Result{}, nil })

// discardQueue is a queue that discards requests. All events share it, as in a controller.
var discardQueue = &noQueue{}

type noQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Add implements workqueue.TypedInterface.
func (*noQueue) Add(reconcile.Request) {}

func benchmarkRecorder(r *why.Recorder) testing.BenchmarkResult {
	c := r.Controller("bench", &appsv1.Deployment{})
	return benchmarkWhy(c.Handler(&handler.EnqueueRequestForObject{}), c.Reconciler(noopReconciler), deploymentVersion(1, 1), deploymentVersion(1, 2))
}

func benchmarkWhy(h handler.EventHandler, r reconcile.Reconciler, old, now *appsv1.Deployment) testing.BenchmarkResult {
	ctx, request := context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(old)}
	return testing.Benchmark(func(b *testing.B) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			h.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: now}, discardQueue)
			if _, err := r.Reconcile(ctx, request); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// hugeFields is the number of additional fields of a huge object.
const hugeFields = 5000

// huge adds fields to a Deployment. Their values differ between versions.
func huge(d *appsv1.Deployment) *appsv1.Deployment {
	container := &d.Spec.Template.Spec.Containers[0]
	for i := range hugeFields {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("FIELD_%d", i), Value: d.ResourceVersion + strings.Repeat("x", 200)})
	}
	return d
}

// deploymentVersion returns one of many versions of a Deployment like those of the fleet.
func deploymentVersion(index, version int) *appsv1.Deployment {
	d := fleetDeployment(appName(index))
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

// fleetDeployment returns a Deployment like those of the fleet.
func fleetDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{{
						Name: "app", Image: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
					}},
				},
			},
		},
	}
}

func writeCost(p printer, c whyCost, single benchstat) {
	p("\n| update of a Deployment and the reconcile it causes, medians | time | allocations | bytes | CPU time |")
	p("|---|---:|---:|---:|---:|")
	row := func(name string, results []testing.BenchmarkResult, cpu string) {
		p("| %s | %d ns | %d | %d | %s |", name, (median(perThousand(results)) / 1000).Nanoseconds(), results[0].AllocsPerOp(), results[0].AllocedBytesPerOp(), cpu)
	}
	row("without a recorder", c.without, median(c.withoutCPU).String())
	row("recorder off", c.off, "")
	row("recorder on", c.on, median(c.recorded).String())
	row(fmt.Sprintf("recorder on, %d more fields changed", hugeFields), []testing.BenchmarkResult{c.huge}, "")
	p("\nA recorder that is off, against no recorder, in %d rounds:\n\n```\n%s\n```", len(c.off), single.table)
}
