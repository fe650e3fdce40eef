// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

const (
	// usual is the error of an operator whose application does not answer, and unusual another one.
	usual   = "connecting to victory-client:2181: no such host"
	unusual = "deleting victory: the server is on fire"
)

func isUsual(failure string) bool { return plain(failure) == plain(usual) }

// failed are reconciles that fail with these errors, each several times.
func failed(times int, errors ...string) (events []*lens.Event) {
	for _, one := range errors {
		events = append(events, repeat(times, reconciled(lens.Reconcile{ID: 1, Error: one}))...)
	}
	return events
}

// TestRetriesAfterSurprises is about an operator that fails as it does undisturbed, until its retries are far apart, and then fails at
// something else.
func TestRetriesAfterSurprises(t *testing.T) {
	const often = 12
	for about, test := range map[string]struct {
		events   []*lens.Event
		expected func(string) bool
		due      bool
		stuck    bool
	}{
		"as undisturbed":                         {failed(often, usual), isUsual, false, true},
		"at something new":                       {slices.Concat(failed(often, usual), failed(1, unusual)), isUsual, true, false},
		"at something new a few times":           {slices.Concat(failed(often, usual), failed(fewRetries, unusual)), isUsual, true, false},
		"at something new without end":           {slices.Concat(failed(often, usual), failed(fewRetries+1, unusual)), isUsual, false, true},
		"and then as undisturbed":                {slices.Concat(failed(often, usual), failed(1, unusual, usual)), isUsual, false, true},
		"the same with another number":           {slices.Concat(failed(often, usual), failed(1, unusual+" 1", unusual+" 2", unusual+" 3", unusual+" 4")), isUsual, false, true},
		"at something new after a success":       {slices.Concat(failed(often, unusual), reconciled(lens.Reconcile{ID: 1}), failed(often, unusual)), isUsual, false, true},
		"a requeue without an error":             {repeat(often, reconciled(lens.Reconcile{ID: 1, Requeue: true})), isUsual, false, true},
		"where it is not known what is expected": {slices.Concat(failed(often, usual), failed(1, unusual)), nil, false, true},
	} {
		t.Run(about, func(t *testing.T) {
			got := following(test.events...).outlook(time.Now(), farFuture, test.expected)
			if got.stuck != test.stuck || !got.due.IsZero() != test.due || got.retries != test.due {
				t.Errorf("got stuck %v, due %v, a retry %v; want %v, %v, %v", got.stuck, !got.due.IsZero(), got.retries, test.stuck, test.due, test.due)
			}
		})
	}
}

// TestHowLongControllerRuntimeBacksOff is about the usual rate limiter after many failures.
func TestHowLongControllerRuntimeBacksOff(t *testing.T) {
	for count, want := range map[int]time.Duration{0: 5 * time.Millisecond, 10: 5120 * time.Millisecond, 14: 81920 * time.Millisecond, 18: 1000 * time.Second, 99: 1000 * time.Second} {
		if got := (&appointment{failures: count}).back(); got != want {
			t.Errorf("after %d failures: got %s, want %s", count, got, want)
		}
	}
}

// waiting is a run of an operator that has failed before, as it does undisturbed.
func waiting(times int) *run {
	c := &campaign{o: Options{Settling: DefaultSettling}, failing: map[string]string{}}
	c.learnFailing([]string{usual})
	return &run{campaign: c, world: &world.World{}, board: newSwitchboard(c.named), activity: following(slices.Concat(failed(times, usual), failed(1, unusual))...)}
}

// TestNothingIsJudgedBeforeTheNextAttempt is about a write that fails once, and succeeds when the operator tries it again.
func TestNothingIsJudgedBeforeTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := waiting(12)
		var done atomic.Bool
		again := time.AfterFunc(firstRetry<<12, func() {
			for _, e := range reconciled(lens.Reconcile{ID: 2}) {
				r.activity.see(e)
			}
			done.Store(true)
		})
		defer again.Stop()
		over, err := r.settleUntil(t.Context(), done.Load)
		if err != nil {
			t.Fatal(err)
		}
		if !done.Load() || over.stuck || over.busy || over.backsOff {
			t.Errorf("the operator has tried again: %v; got %+v", done.Load(), over)
		}
	})
}

// TestAttemptsThatAreTooLate are not waited for, and the run is not judged.
func TestAttemptsThatAreTooLate(t *testing.T) {
	for about, test := range map[string]struct {
		failures int
		backsOff bool
	}{
		"within the time of a step":  {12, false},
		"later than a step may take": {15, true},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, began := waiting(test.failures), time.Now()
				over, err := r.settleUntil(t.Context(), func() bool { return false })
				if err != nil {
					t.Fatal(err)
				}
				if over.busy || over.backsOff != test.backsOff {
					t.Errorf("got %+v", over)
				}
				if took, most := time.Since(began), 2*DefaultSettling.Bound; took > most {
					t.Errorf("it took %s, want %s at most", took, most)
				}
			})
		})
	}
}

// TestTimersThatAStepDoesNotWaitFor are known at its end.
func TestTimersThatAStepDoesNotWaitFor(t *testing.T) {
	for about, test := range map[string]struct {
		events []*lens.Event
		want   map[string]time.Duration
	}{
		"a timer of seconds":       {reconciled(lens.Reconcile{ID: 1, RequeueAfter: 33 * time.Second}), map[string]time.Duration{"frigate": 33 * time.Second}},
		"a timer of minutes":       {reconciled(lens.Reconcile{ID: 1, RequeueAfter: 5 * time.Minute}), map[string]time.Duration{"frigate": 5 * time.Minute}},
		"a timer of hours":         {reconciled(lens.Reconcile{ID: 1, RequeueAfter: 10 * time.Hour}), map[string]time.Duration{"frigate": 0}},
		"a timer before a success": {slices.Concat(reconciled(lens.Reconcile{ID: 1, RequeueAfter: 5 * time.Minute}), reconciled(lens.Reconcile{ID: 2})), nil},
		"a timer before an error":  {slices.Concat(reconciled(lens.Reconcile{ID: 1, RequeueAfter: 5 * time.Minute}), failed(9, usual)), nil},
		"no timer":                 {reconciled(lens.Reconcile{ID: 1}), nil},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := waiting(1)
				r.activity = following(test.events...)
				first, err := r.settle(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				over, err := r.settleMore(t.Context(), first, func() bool { return false })
				if err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(over.timers, test.want) {
					t.Errorf("got %+v", over)
				}
			})
		})
	}
}

// TestPodsThatAreAboutToGo belong to the step that deletes them, also where the machine is slow.
func TestPodsThatAreAboutToGo(t *testing.T) {
	pod := func(finalizers ...string) *unstructured.Unstructured {
		one := sceneObject("Pod", "victory-0")
		one.SetFinalizers(finalizers)
		return one
	}
	deleted := func(one *unstructured.Unstructured) *unstructured.Unstructured {
		one.SetDeletionTimestamp(ptr.To(metav1.Now()))
		return one
	}
	long := DefaultSettling.Progress * patience
	for about, test := range map[string]struct {
		object      *unstructured.Unstructured
		least, most time.Duration
	}{
		"a pod":                          {pod(), 0, DefaultSettling.Progress - time.Millisecond},
		"a pod that is deleted":          {deleted(pod()), long, long + time.Second},
		"a pod that a finalizer holds":   {deleted(pod("sea.example.com/held")), DefaultSettling.Progress, long - time.Second},
		"another object that is deleted": {deleted(sceneObject("Frigate", "victory")), DefaultSettling.Progress, long - time.Second},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := waiting(0)
				r.world, r.activity = world.Of(sceneState(test.object)), following(reconciled(lens.Reconcile{ID: 1})...)
				began := time.Now()
				if _, err := r.settle(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestOperatorsWithoutMarks is about one that looks after its objects every half minute. Nothing shows that it is going to.
func TestOperatorsWithoutMarks(t *testing.T) {
	for about, test := range map[string]struct {
		repairs time.Duration
		least   time.Duration
		most    time.Duration
	}{
		"it repairs something at last": {25 * time.Second, 25 * time.Second, 28 * time.Second},
		"there is nothing to repair":   {0, 0, 10 * time.Second},
		"it never does":                {time.Hour, 30 * time.Second, time.Minute},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling = DefaultSettling
				r := &run{campaign: c, world: worldOf(t, true), board: newSwitchboard(c.named), activity: newActivity()}
				began := time.Now()
				time.AfterFunc(test.repairs, func() { r.activity.see(request(lens.Request{Verb: "update", Resource: deployments, Status: 200})) })
				if _, err := r.settleUntil(t.Context(), func() bool { return time.Since(began) >= test.repairs }); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < test.least || took > test.most {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
