// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// kept is how many records there are, without settling the journal for it.
func (s *stage) kept() int {
	s.recorder.mutex.Lock()
	defer s.recorder.mutex.Unlock()
	return s.recorder.store.count
}

func (s *stage) journalled() (lines, events int) {
	s.recorder.journal.mutex.Lock()
	defer s.recorder.journal.mutex.Unlock()
	return len(s.recorder.journal.lines), s.recorder.journal.events
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

func TestJournalIsSettledAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, Options{Clock: clock.RealClock{}})
		s.created(web(), false)
		s.reconcileUnread()
		synctest.Wait()
		if s.kept() != 0 {
			t.Error("it was settled at once")
		}
		time.Sleep(journalPatience)
		synctest.Wait()
		if s.kept() != 1 {
			t.Error("it was not settled")
		}
	})
}

// Whoever follows is told at once, and so is whoever reads a log.
func TestJournalDoesNotLetWait(t *testing.T) {
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
			s.created(web(), false)
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
	s.created(web(), false)
	s.reconcileUnread()
	if logged != 1 {
		t.Errorf("%d lines are logged", logged)
	}
}

func TestJournalIsBounded(t *testing.T) {
	s := newStage(t, Options{MaxUncompared: 10})
	handlers := sync.WaitGroup{}
	for range 4 {
		handlers.Go(func() {
			for range 1000 {
				s.updated(web(), web())
				if lines, events := s.journalled(); events > 10+4 || lines > maxLines {
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
	s.created(web(), false)
	s.wantCauses(s.reconcile(nil), "created Deployment default/web by kubectl")
}
