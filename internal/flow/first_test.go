// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

func TestTheFirstStatusWaitsForProgress(t *testing.T) {
	for name, test := range map[string]struct {
		outcomes []error // of the passes, half of firstStatus apart
		writes   []int   // of each pass
	}{
		"ready in time":          {[]error{Waiting("RollingOut", "0 of 1"), nil, nil}, []int{0, 1, 0}},
		"ready too late":         {[]error{Waiting("RollingOut", "0 of 1"), Waiting("RollingOut", "0 of 1"), Waiting("RollingOut", "0 of 1"), nil}, []int{0, 0, 1, 1}},
		"stalled":                {[]error{Stalled("Bad", errors.New("bad"))}, []int{1}},
		"stalled while it waits": {[]error{Waiting("RollingOut", "0 of 1"), Stalled("Bad", errors.New("bad"))}, []int{0, 1}},
		"failed":                 {[]error{errors.New("no")}, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, robot())
			for pass, outcome := range test.outcomes {
				w.step = func(*Pass, *robotv1.Robot) error { return outcome }
				result, _ := w.reconcile()
				if len(w.writes) != test.writes[pass] {
					t.Errorf("pass %d: %v, want %d", pass+1, w.writes, test.writes[pass])
				}
				if pass == 0 && test.writes[0] == 0 && result.RequeueAfter != firstStatus {
					t.Errorf("the first status comes after %s", result.RequeueAfter)
				}
				w.clock.SetTime(w.clock.Now().Add(firstStatus / 2))
			}
		})
	}
}

func TestProgressOfANewGenerationIsReportedAtOnce(t *testing.T) {
	r := robot()
	w := newWorld(t, r)
	if _, err := w.reconcile(); err != nil || len(w.writes) != 1 {
		t.Fatal(err, w.writes)
	}
	r = w.get()
	r.Generation = 2
	if err := w.Client.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	w.step = func(*Pass, *robotv1.Robot) error { return Waiting("RollingOut", "0 of 1") }
	if _, err := w.reconcile(); err != nil || len(w.writes) != 1 {
		t.Error("it still says that the old generation is ready", err, w.writes)
	}
}

func TestFirstStatusesAreSpread(t *testing.T) {
	var first firstStatuses
	now := time.Now()
	key := func(i int) types.NamespacedName { return types.NamespacedName{Name: strconv.Itoa(i)} }
	for i := range 1000 {
		want := min(firstStatus+time.Duration(i)*firstStatusEach, maxFirstStatus)
		if got := first.wait(key(i), now); got != want {
			t.Fatalf("%d waits for %s, want %s", i, got, want)
		}
	}
	if got := first.wait(key(0), now.Add(firstStatus)); got != 0 {
		t.Errorf("the first one still waits for %s", got)
	}
	for i := range 1000 {
		first.done(key(i))
	}
	if got := first.wait(key(0), now); got != firstStatus {
		t.Errorf("a single one waits for %s after the others are done", got)
	}
}
