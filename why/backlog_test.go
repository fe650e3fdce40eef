// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

// kept is how many records there are, without settling the backlog for it.
func (s *stage) kept() int {
	s.recorder.mutex.Lock()
	defer s.recorder.mutex.Unlock()
	return s.recorder.store.count
}

func (s *stage) unprocessed() (lines, events int) {
	s.recorder.backlog.mutex.Lock()
	defer s.recorder.backlog.mutex.Unlock()
	return len(s.recorder.backlog.lines), s.recorder.backlog.events
}

func nothing(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

func (s *stage) reconcileUnread() {
	s.Helper()
	if _, err := s.controller.Reconciler(reconcile.Func(nothing)).Reconcile(s.Context(), request); err != nil {
		s.Fatal(err)
	}
}

func TestBacklogIsSettledAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Options{Clock: clock.RealClock{}})
		s.created(whytest.Web(), false)
		s.reconcileUnread()
		synctest.Wait()
		if s.kept() != 0 {
			t.Error("it was settled at once")
		}
		time.Sleep(backlogPatience) // by the clock of synctest, which takes no time
		synctest.Wait()
		if s.kept() != 1 {
			t.Error("it was not settled")
		}
	})
}

// Followers and readers of a log get records at once.
func TestBacklogDoesNotLetWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Options{Clock: clock.RealClock{}})
		told := make(chan uint64)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer close(told)
			for record := range s.recorder.Follow(ctx, Query{}) {
				told <- record.ID
			}
		}()
		began := time.Now()
		for id := uint64(1); id < 4; id++ {
			synctest.Wait()
			s.created(whytest.Web(), false)
			s.reconcileUnread()
			if got := <-told; got != id {
				t.Errorf("record %d is told, not %d", got, id)
			}
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it took %s", waited)
		}
		stop()
		<-told
	})
	var logged int
	s := newStage(t, Options{Logger: funcr.New(func(string, string) { logged++ }, funcr.Options{Verbosity: 1})})
	s.created(whytest.Web(), false)
	s.reconcileUnread()
	if logged != 1 {
		t.Errorf("%d lines are logged", logged)
	}
}

// Without readers and without a log at level 1, a loop is still logged.
func TestLoopsAreLoggedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logged := make(chan string, 10)
		s := newStage(t, Options{LoopLength: 1, Clock: clock.RealClock{}, Logger: funcr.New(func(_, line string) { logged <- line }, funcr.Options{})})
		write := s.controller.Reconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			return s.writing(verbUpdate, whytest.Web(), "2")(ctx)
		}))
		s.created(whytest.Web(), false)
		if _, err := write.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		s.changed(whytest.Web(), "", label("x")) // to version 2, which it has written
		s.reconcileUnread()
		time.Sleep(backlogPatience) // by the clock of synctest, which takes no time
		synctest.Wait()
		if len(logged) != 1 {
			t.Errorf("%d lines are logged", len(logged))
		}
	})
}

// An event that is being handled may still lead to something. If it was told that it has led to nothing, that stands: metrics do
// not take back what they have counted.
func TestFilteredNeverFalls(t *testing.T) {
	s := newStage(t, Options{})
	s.controller.Handler(handler.Funcs{}).Create(t.Context(), event.CreateEvent{Object: pod("ignored")}, s.queue)
	for i := range 3 {
		late := s.controller.Handler(handler.Funcs{CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) {
			if filtered := s.recorder.Summary().Controllers[0].Filtered; filtered != 2 {
				t.Errorf("%d events have led to nothing while one is handled", filtered)
			}
			q.Add(request)
		}})
		late.Create(t.Context(), event.CreateEvent{Object: pod(strconv.Itoa(i))}, s.queue)
		if filtered := s.recorder.Summary().Controllers[0].Filtered; filtered != 2 {
			t.Errorf("%d events have led to nothing after it was handled", filtered)
		}
	}
}

func TestBacklogIsBounded(t *testing.T) {
	s := newStage(t, Options{MaxUncompared: 10})
	handlers := sync.WaitGroup{}
	for range 4 {
		handlers.Go(func() {
			for range 1000 {
				s.updated(whytest.Web(), whytest.Web())
				if lines, events := s.unprocessed(); events > 10+4 || lines > maxLines {
					t.Errorf("%d events and %d lines are kept", events, lines)
					return
				}
			}
		})
	}
	handlers.Wait()
	if folded := s.reconcile(nil).Folded; folded != 4000 {
		t.Errorf("%d events are told", folded)
	}
}

// A goroutine that outlives its reconcile writes after the end, which is in the same part of the backlog.
func TestWritesAfterTheEnd(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), false)
	var late func()
	r := s.controller.Reconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		late = func() {
			if err := s.write(ctx, verbUpdate, "", pod("a"), func() error { return nil }); err != nil {
				t.Error(err)
			}
		}
		late()
		return reconcile.Result{}, nil
	}))
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	late()
	if record := s.last(); record.Written != 1 || len(record.Writes) != 1 || s.recorder.Summary().Dropped.Writes != 1 {
		t.Errorf("the record is %+v", record)
	}
}

// What is not watched for loops are the first two reconciles, and no more.
func TestPeacefulReconciles(t *testing.T) {
	s := newStage(t, Options{})
	object := client.Object(whytest.Web())
	for i, want := range []int{0, 0, 1} {
		object = s.changed(object, "", label(i))
		s.reconcile(nil)
		if watched := s.watched(); watched != want {
			t.Errorf("after %d reconciles, %d fields are watched", i+1, watched)
		}
	}
}

// A handler may ignore its queue, and a test of it may give it none.
func TestHandlerWithoutAQueue(t *testing.T) {
	s := newStage(t, Options{})
	s.controller.Handler(handler.Funcs{}).Create(t.Context(), event.CreateEvent{Object: whytest.Web()}, nil)
	if filtered := s.recorder.Summary().Controllers[0].Filtered; filtered != 1 {
		t.Errorf("%d events led to nothing", filtered)
	}
}

// strange is a type whose methods fail.
type strange struct {
	corev1.Pod

	inner *corev1.Pod
}

func (s *strange) GetResourceVersion() string { return s.inner.ResourceVersion }

func TestTypesThatPanic(t *testing.T) {
	s := newStage(t, Options{})
	s.updated(&strange{}, &strange{})
	s.wantCauses(s.reconcile(nil), "updated")
	s.created(whytest.Web(), false)
	s.wantCauses(s.reconcile(nil), "created Deployment default/web by kubectl")
}

// All at once: whatever the order in which lines are settled and by whom, nothing is lost, told twice or taken back.
func TestEverybodyAtOnce(t *testing.T) {
	const workers, each = 4, 250
	registry := prometheus.NewRegistry()
	s := newStage(t, Options{MaxUncompared: 16, MaxRecords: 10 * workers * each, MaxPerObject: 2 * each, Clock: clock.RealClock{}, Registerer: registry})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var follower, reader, writers sync.WaitGroup
	followed := map[uint64]int{}
	follower.Go(func() {
		for record, lost := range s.recorder.Follow(ctx, Query{}) {
			followed[record.ID]++
			if lost != 0 {
				t.Errorf("%d records are lost", lost)
			}
			if len(followed) == workers*each {
				return
			}
		}
	})
	reader.Go(func() {
		filtered := uint64(0)
		for ctx.Err() == nil {
			if _, err := registry.Gather(); err != nil {
				t.Error(err)
			}
			of := s.recorder.Summary().Controllers[0]
			if of.Filtered < filtered {
				t.Errorf("of %d events that led to nothing, %d are left", filtered, of.Filtered)
			}
			filtered = of.Filtered
		}
	})
	ignoring := s.controller.Handler(handler.Funcs{})
	for worker := range workers {
		writers.Go(func() {
			name := types.NamespacedName{Namespace: "default", Name: strconv.Itoa(worker)}
			mine := reconcile.Request{NamespacedName: name}
			h := s.controller.Handler(handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{mine} }))
			r := s.controller.Reconciler(reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{}, s.write(ctx, verbUpdate, "", pod("written"), func() error { return nil })
			}))
			for i := range each {
				old, now := whytest.Web(), whytest.Web()
				now.ResourceVersion, *now.Spec.Replicas = strconv.Itoa(i+2), int32(i)
				h.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: now}, s.queue)
				ignoring.Update(t.Context(), event.UpdateEvent{ObjectOld: old, ObjectNew: now}, s.queue)
				if _, err := r.Reconcile(t.Context(), mine); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	total := s.recorder.Summary().Controllers[0]
	if total.Reconciles != workers*each || total.Causes[Updated] != workers*each || total.Writes != workers*each || total.Filtered != workers*each || total.Waiting != 0 {
		t.Errorf("the total is %+v", total)
	}
	for worker := range workers {
		last := uint64(0)
		for _, record := range s.recorder.Records(Query{Name: strconv.Itoa(worker), Limit: 1000}) {
			if record.ID <= last || len(record.Causes) != 1 || len(record.Writes) != 1 || record.Causes[0].Changed == 0 && record.Causes[0].ResourceVersion != "5" {
				t.Errorf("a record is %+v", record)
			}
			last = record.ID
		}
	}
	follower.Wait()
	stop()
	reader.Wait()
	if len(followed) != workers*each {
		t.Errorf("%d records are followed", len(followed))
	}
	for id, times := range followed {
		if times != 1 {
			t.Errorf("record %d is told %d times", id, times)
		}
	}
}
