// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// stage is a controller of Deployments without a manager: events and reconciles happen when a test says so.
type stage struct {
	*testing.T
	recorder   *Recorder
	controller *Controller
	clock      *clocktesting.FakeClock
	handler    handler.EventHandler
	queue      workqueue.TypedRateLimitingInterface[reconcile.Request]
	version    int
}

func newStage(t *testing.T, o Options) *stage {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if o.Clock == nil {
		o.Clock = clock
	}
	s := &stage{T: t, recorder: New(o), clock: clock, version: 1}
	s.controller = s.recorder.Controller("web", &appsv1.Deployment{})
	s.handler = s.controller.Handler(sameRequest)
	s.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(s.queue.ShutDown)
	return s
}

// sameRequest asks for the same reconcile whatever happens.
var sameRequest = handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{request}
})

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

var request = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "web"}}

func (s *stage) created(object client.Object, listed bool) {
	s.handler.Create(s.Context(), event.CreateEvent{Object: object, IsInInitialList: listed}, s.queue)
}

func (s *stage) updated(old, now client.Object) {
	s.handler.Update(s.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: now}, s.queue)
}

// changed returns an updated copy with a new version and a writer.
func (s *stage) changed(old client.Object, manager string, change func(client.Object)) client.Object {
	now := old.DeepCopyObject().(client.Object)
	change(now)
	s.version++
	now.SetResourceVersion(strconv.Itoa(s.version))
	if manager != "" {
		s.clock.Step(time.Second)
		at := metav1.NewTime(s.clock.Now())
		now.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at}})
	}
	s.updated(old, now)
	return now
}

// write sends a request as a client of the recorder does.
func (s *stage) write(ctx context.Context, verb, manager string, object client.Object, send func() error) error {
	_, asked := s.recorder.ask(ctx, object, verb, "", manager, nil, nil)
	return asked.answered(object, send())
}

// reconcile calls the reconciler and returns its record.
func (s *stage) reconcile(do func(context.Context) (reconcile.Result, error)) *Record {
	s.Helper()
	if do == nil {
		do = func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, nil }
	}
	r := s.controller.Reconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) { return do(ctx) }))
	_, _ = r.Reconcile(s.Context(), request)
	return s.last()
}

func (s *stage) last() *Record {
	s.Helper()
	records := s.recorder.Records(Query{Limit: 1})
	if len(records) == 0 {
		s.Fatal("there are no records")
	}
	return records[0]
}

// causes says in a line what led to a reconcile.
func causes(r *Record) string {
	all := make([]string, len(r.Causes))
	for i := range r.Causes {
		all[i] = r.Causes[i].String()
	}
	return strings.Join(all, "; ")
}

func findings(r *Record) string {
	all := make([]string, len(r.Findings))
	for i := range r.Findings {
		all[i] = string(r.Findings[i].Type)
	}
	return strings.Join(all, " ")
}

func (s *stage) wantCauses(r *Record, want string) {
	s.Helper()
	if got := causes(r); got != want {
		s.Errorf("causes are %q, want %q", got, want)
	}
}

func (s *stage) wantFindings(r *Record, want string) {
	s.Helper()
	if got := findings(r); got != want {
		s.Errorf("findings are %q, want %q; causes are %s", got, want, causes(r))
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), ResourceVersion: "1"}}
}

func replicas(n int32) func(client.Object) {
	return func(object client.Object) {
		d := object.(*appsv1.Deployment)
		d.Spec.Replicas = &n
		d.Generation++
	}
}

func label(value any) func(client.Object) {
	return func(object client.Object) { object.SetLabels(map[string]string{"label": fmt.Sprint(value)}) }
}
