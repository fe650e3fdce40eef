// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

func TestCausesOfEvents(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), true)
	s.wantCauses(s.reconcile(nil), "listed Deployment default/web")

	s.created(pod("a"), false)
	s.wantCauses(s.reconcile(nil), "created Pod default/a")

	s.updated(whytest.Web(), whytest.Web())
	s.wantCauses(s.reconcile(nil), "resynced Deployment default/web")

	s.changed(whytest.Web(), "kubectl", replicas(1))
	s.wantCauses(s.reconcile(nil), "updated Deployment default/web spec.replicas 3→1 by kubectl")

	s.handler.Delete(t.Context(), event.DeleteEvent{Object: pod("a")}, s.queue)
	s.wantCauses(s.reconcile(nil), "deleted Pod default/a")

	s.handler.Delete(t.Context(), event.DeleteEvent{Object: pod("never-seen"), DeleteStateUnknown: true}, s.queue)
	s.wantCauses(s.reconcile(nil), "deleted Pod default/never-seen")

	s.handler.Generic(t.Context(), event.GenericEvent{Object: pod("a")}, s.queue)
	s.wantCauses(s.reconcile(nil), "generic Pod default/a")

	s.clock.Step(time.Minute)
	s.wantCauses(s.reconcile(nil), "unknown")
}

func TestEventsAreFolded(t *testing.T) {
	s := newStage(t, Options{MaxCauses: 3})
	for i := range 5 {
		s.created(pod(strconv.Itoa(i)), false)
		s.clock.Step(time.Second)
	}
	r := s.reconcile(nil)
	s.wantCauses(r, "created Pod default/0; created Pod default/1; created Pod default/4")
	if r.Folded != 5 || r.Waited != 5*time.Second {
		t.Errorf("%d events were folded and waited %s, want 5 and 5s", r.Folded, r.Waited)
	}
	if total := s.recorder.Summary().Controllers[0]; total.Folded != 4 || total.Reconciles != 1 {
		t.Errorf("the total is %+v", total)
	}
}

func TestRetriesAndTimers(t *testing.T) {
	s := newStage(t, Options{})
	ask := func(after time.Duration) func(context.Context) (reconcile.Result, error) {
		return func(context.Context) (reconcile.Result, error) { return reconcile.Result{RequeueAfter: after}, nil }
	}
	s.created(whytest.Web(), false)
	r := s.reconcile(func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, errors.New("busy") })
	if r.Outcome != Failed || r.Error != "busy" {
		t.Errorf("the outcome is %s, %s", r.Outcome, r.Error)
	}
	r = s.reconcile(ask(time.Minute))
	s.wantCauses(r, "retried")
	if r.Outcome != Requeued || r.RequeueAfter != time.Minute {
		t.Errorf("the outcome is %s, %s", r.Outcome, r.RequeueAfter)
	}
	s.clock.Step(time.Minute + time.Millisecond)
	r = s.reconcile(ask(time.Minute))
	s.wantCauses(r, "timer")
	if r.Waited != time.Millisecond {
		t.Errorf("it waited %s after the timer had ended", r.Waited)
	}

	// An event before the timer ends is the only cause.
	s.created(pod("a"), false)
	s.wantCauses(s.reconcile(nil), "created Pod default/a")
	// A queue that calls for the timer nevertheless does not do so for unknown reasons.
	s.clock.Step(time.Minute)
	s.wantCauses(s.reconcile(nil), "timer")
	s.clock.Step(time.Minute)
	s.wantCauses(s.reconcile(nil), "unknown")

	r = s.reconcile(func(context.Context) (reconcile.Result, error) {
		return reconcile.Result{}, reconcile.TerminalError(errors.New("never"))
	})
	if r.Outcome != Terminal {
		t.Errorf("the outcome is %s", r.Outcome)
	}
	s.clock.Step(time.Minute)
	s.wantCauses(s.reconcile(nil), "unknown")
}

func TestEventInTheInstantOfAReconcile(t *testing.T) {
	s := newStage(t, Options{})
	s.created(pod("a"), false)
	s.reconcile(nil)
	// The queue was told only after the reconcile had begun, so it calls again.
	r := s.reconcile(nil)
	s.wantCauses(r, "created Pod default/a (seen before)")
	s.wantFindings(r, "noop")
	// It does so once.
	s.wantCauses(s.reconcile(nil), "unknown")
}

// What a handler that is not wrapped asks for is not owed to the last event that is known.
func TestHandlerThatIsNotWrapped(t *testing.T) {
	s := newStage(t, Options{})
	s.changed(whytest.Web(), "kubectl-label", label(1))
	s.reconcile(nil)
	s.clock.Step(300 * time.Millisecond)
	s.wantCauses(s.reconcile(nil), "unknown")

	// It may have seen what the reconcile wrote.
	s.changed(whytest.Web(), "kubectl-label", label(2))
	s.reconcile(s.writing(verbUpdate, pod("a"), "77"))
	s.wantCauses(s.reconcile(nil), "unknown")
}

// The classic queue keeps a retry if the object is reconciled for another reason, and calls once more for it.
func TestRetryThatIsKept(t *testing.T) {
	s := newStage(t, Options{})
	fail := func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, errors.New("busy") }
	s.created(pod("a"), false)
	s.reconcile(fail)
	s.clock.Step(time.Second)
	s.changed(pod("b"), "kubectl-label", label(1))
	s.wantCauses(s.reconcile(nil), `retried; updated Pod default/b metadata.labels.label →"1" by kubectl-label`)
	s.clock.Step(time.Second)
	s.wantCauses(s.reconcile(nil), "retried")
	s.clock.Step(time.Second)
	s.wantCauses(s.reconcile(nil), "unknown")

	// No queue keeps it for ever.
	s.created(pod("c"), false)
	s.reconcile(fail)
	s.created(pod("d"), false)
	s.reconcile(nil)
	s.clock.Step(time.Hour)
	s.wantCauses(s.reconcile(nil), "unknown")
}

// Two watches that see the same event are two reconciles for it at most, and the second is told as what it is.
func TestEventOfTwoWatches(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), false)
	s.reconcile(nil)
	seeTwice := func(between func()) *Record {
		old, now := pod("a"), pod("a")
		s.version++
		now.ResourceVersion, now.Labels = strconv.Itoa(s.version), map[string]string{"version": strconv.Itoa(s.version)}
		s.updated(old, now)
		between()
		s.updated(old, now)
		return s.reconcile(nil)
	}
	r := seeTwice(func() {})
	if r.Folded != 1 || len(r.Causes) != 1 || r.Causes[0].Repeated {
		t.Errorf("%d events, the causes are %s", r.Folded, causes(r))
	}
	r = seeTwice(func() { s.reconcile(nil) })
	s.wantFindings(r, "noop")
	if !r.Causes[0].Repeated || r.Findings[0].Message != "the previous reconcile had already handled the same event, and it wrote nothing" {
		t.Errorf("the record is %+v", r)
	}
	// If that one has failed, it is not for nothing.
	r = seeTwice(func() {
		s.reconcile(func(context.Context) (reconcile.Result, error) {
			return reconcile.Result{}, reconcile.TerminalError(errors.New("never"))
		})
	})
	s.wantFindings(r, "")
}

func TestWaitedIsNotIntended(t *testing.T) {
	s := newStage(t, Options{})
	wantWaited := func(r *Record, want time.Duration) {
		t.Helper()
		if r.Waited != want {
			t.Errorf("after %s it waited %s, want %s", causes(r), r.Waited, want)
		}
	}
	s.created(pod("a"), false)
	s.clock.Step(time.Second)
	wantWaited(s.reconcile(func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, errors.New("busy") }), time.Second)
	s.clock.Step(time.Second)
	wantWaited(s.reconcile(nil), 0)

	later := s.controller.Handler(handler.Funcs{CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.AddAfter(request, 5*time.Second) }})
	later.Create(t.Context(), event.CreateEvent{Object: pod("b")}, s.queue)
	s.clock.Step(5*time.Second + time.Millisecond)
	wantWaited(s.reconcile(nil), time.Millisecond)

	limited := s.controller.Handler(handler.Funcs{CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { q.AddRateLimited(request) }})
	limited.Create(t.Context(), event.CreateEvent{Object: pod("c")}, s.queue)
	s.clock.Step(time.Minute)
	wantWaited(s.reconcile(nil), 0)
}

func TestWaitingAreEvents(t *testing.T) {
	s := newStage(t, Options{})
	s.created(pod("a"), false)
	wantWaiting := func(want int) {
		t.Helper()
		if got := s.recorder.Summary().Controllers[0].Waiting; got != want {
			t.Errorf("%d wait, want %d", got, want)
		}
	}
	wantWaiting(1)
	s.reconcile(func(context.Context) (reconcile.Result, error) { return reconcile.Result{RequeueAfter: time.Hour}, nil })
	wantWaiting(0)
	s.created(pod("b"), false)
	s.reconcile(nil)
	wantWaiting(0)
}

func TestCausesBeyondTheRecordAreCounted(t *testing.T) {
	s := newStage(t, Options{MaxCauses: 2})
	for i := range 5 {
		s.created(pod(strconv.Itoa(i)), false)
	}
	s.reconcile(nil)
	if total := s.recorder.Summary().Controllers[0]; total.Causes[Created] != 5 {
		t.Errorf("the total is %+v", total)
	}
	s.recorder.readSettled(func() {
		if all := s.recorder.totalsByName()["web"].causes; all[causeKind{Created, "Pod"}] != 5 {
			t.Errorf("the metrics are %v", all)
		}
	})
}

func TestPanicGoesOnAsItWas(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), false)
	thrown := &struct{ reason string }{"broken"}
	func() {
		defer func() {
			if got := recover(); got != any(thrown) {
				t.Errorf("recovered %v", got)
			}
		}()
		s.reconcile(func(context.Context) (reconcile.Result, error) { panic(thrown) })
	}()
	if r := s.last(); r.Outcome != Panicked {
		t.Errorf("the outcome is %s", r.Outcome)
	}
	s.wantCauses(s.reconcile(nil), "retried")
}

func TestClockThatIsSetBack(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), false)
	s.clock.SetTime(s.clock.Now().Add(-time.Hour))
	r := s.reconcile(func(context.Context) (reconcile.Result, error) {
		s.clock.SetTime(s.clock.Now().Add(-time.Hour))
		return reconcile.Result{RequeueAfter: time.Second}, nil
	})
	if r.Waited != 0 || r.Duration != 0 {
		t.Errorf("it waited %s and took %s", r.Waited, r.Duration)
	}
	s.clock.SetTime(s.clock.Now().Add(-time.Hour))
	s.wantCauses(s.reconcile(nil), "timer")
}

func TestObjectsWithoutManagedFieldsOrMetadata(t *testing.T) {
	s := newStage(t, Options{})
	s.changed(whytest.Web(), "", func(o client.Object) { o.SetManagedFields(nil); replicas(1)(o) })
	r := s.reconcile(nil)
	s.wantCauses(r, "updated Deployment default/web spec.replicas 3→1 by an unknown writer")
	if r.Causes[0].By != nil {
		t.Errorf("it was %v", r.Causes[0].By)
	}

	texts := TypedHandler(s.controller, handler.TypedFuncs[string, reconcile.Request]{
		GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[string], q queue) { q.Add(request) },
	})
	texts.Generic(t.Context(), event.TypedGenericEvent[string]{Object: "text"}, s.queue)
	s.wantCauses(s.reconcile(nil), "generic")

	var none *appsv1.Deployment
	typed := TypedHandler(s.controller, handler.TypedFuncs[*appsv1.Deployment, reconcile.Request]{
		GenericFunc: func(_ context.Context, _ event.TypedGenericEvent[*appsv1.Deployment], q queue) { q.Add(request) },
	})
	typed.Generic(t.Context(), event.TypedGenericEvent[*appsv1.Deployment]{Object: none}, s.queue)
	s.wantCauses(s.reconcile(nil), "generic")
}

func TestMetadataOnly(t *testing.T) {
	s := newStage(t, Options{})
	node := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", ResourceVersion: "1"}}
	node.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	s.changed(node, "kubectl", label("x"))
	s.wantCauses(s.reconcile(nil), `updated ReplicaSet n metadata.labels.label →"x" by kubectl`)
}

func TestHandlerThatAsksLater(t *testing.T) {
	s := newStage(t, Options{})
	var later func()
	s.handler = s.controller.Handler(handler.Funcs{
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q queue) { later = func() { q.Add(request) } },
	})
	s.changed(whytest.Web(), "kubectl", replicas(1))
	s.handler = s.controller.Handler(&handler.EnqueueRequestForObject{})
	s.created(whytest.Web(), false)
	s.reconcile(nil)
	later()
	s.wantCauses(s.reconcile(nil), "updated Deployment default/web spec.replicas 3→1 by kubectl")
}

func TestOff(t *testing.T) {
	var off *Recorder
	c := off.Controller("web", &appsv1.Deployment{})
	h := &handler.EnqueueRequestForObject{}
	if c.Handler(h) != handler.EventHandler(h) {
		t.Error("the handler is another one")
	}
	r := &fakeReconciler{}
	if c.Reconciler(r) != reconcile.Reconciler(r) {
		t.Error("the reconciler is another one")
	}
	if off.Client(nil) != nil || off.Records(Query{}) != nil || len(off.Summary().Controllers) != 0 {
		t.Error("it records")
	}
	for range off.Follow(t.Context(), Query{}) {
		t.Error("there is a record")
	}
}

type fakeReconciler struct{}

func (*fakeReconciler) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// Events of raw sources are shown to no predicate that counts, and are not to make up for those that predicates drop.
func TestFilteredBesidesRawSources(t *testing.T) {
	s := newStage(t, Options{})
	counting := seenCounter{s.controller}
	watch := &typedHandler[client.Object, reconcile.Request]{controller: s.controller, inner: sameRequest, counted: true}
	for i := range 3 {
		e := event.CreateEvent{Object: pod(strconv.Itoa(i))}
		if counting.Create(e) && i == 0 {
			watch.Create(t.Context(), e, s.queue)
		}
	}
	for i := range 5 {
		s.created(pod("raw-"+strconv.Itoa(i)), false)
	}
	if total := s.recorder.Summary().Controllers[0]; total.Filtered != 2 {
		t.Errorf("%d events are filtered, want 2", total.Filtered)
	}
}
