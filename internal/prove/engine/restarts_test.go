// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
	"github.com/opdock/opdock/why"
)

// What is wrong after one restart and not after the next is no finding, but it is masked.
func TestRestartsAreConfirmed(t *testing.T) {
	late, lasting := missing("Pod"), missing("Deployment")
	for name, test := range map[string]struct {
		runs   []*restarted // nil fails
		want   []*Observation
		shapes int
	}{
		"nothing":          {[]*restarted{{}}, nil, 1},
		"both times":       {[]*restarted{{wrong: []*Observation{lasting}}, {wrong: []*Observation{missing("Deployment")}}}, []*Observation{lasting}, 2},
		"once":             {[]*restarted{{wrong: []*Observation{late}}, {}}, nil, 2},
		"one of two":       {[]*restarted{{wrong: []*Observation{late, lasting}}, {wrong: []*Observation{lasting}}}, []*Observation{lasting}, 2},
		"fails":            {[]*restarted{nil}, nil, 0},
		"fails the second": {[]*restarted{{wrong: []*Observation{lasting}}, nil}, []*Observation{lasting}, 1},
	} {
		done := 0
		wrong, shapes := confirmed(func() (*restarted, error) {
			one := test.runs[done]
			done++
			if one == nil {
				return nil, errors.New("the disk is full")
			}
			one.shape = compare.Shape{}
			return one, nil
		})
		if done != len(test.runs) || len(shapes) != test.shapes || len(wrong) != len(test.want) {
			t.Fatalf("%s: %d restarts, %d shapes, wrong is %+v", name, done, len(shapes), wrong)
		}
		for i := range wrong {
			if wrong[i] != test.want[i] {
				t.Errorf("%s: got %+v", name, wrong[i])
			}
		}
	}
}

// An operator that looks at its objects every 30 seconds writes then what a restart lets it write at once.
func TestWritesThatATimerWouldHaveLedTo(t *testing.T) {
	writes, panics := &Observation{Verdict: "rest-writes"}, &Observation{Verdict: "panic"}
	const created, changed = 0, 1
	c := sailing()
	if got := c.dueAnyway([]*Observation{writes, panics}, changed); len(got) != 2 {
		t.Errorf("without a timer: %+v", got)
	}
	c.reference[created].rested.timer, c.reference[changed].rested.timer = true, true
	if got := c.dueAnyway([]*Observation{writes, panics}, changed); len(got) != 1 || got[0] != panics {
		t.Errorf("with a timer: %+v", got)
	}
	c.timed = timed{}
	c.timed.add("Frigate", "status.conditions[Ready].message")
	due := &Observation{Verdict: "rest-writes", Object: "Frigate default/victory", Fields: []string{"status.conditions[Ready].message"}}
	other := &Observation{Verdict: "rest-writes", Object: "Deployment default/victory", Fields: []string{"spec.template.metadata.annotations[restarted]"}}
	if got := c.dueAnyway([]*Observation{due, other}, changed); len(got) != 1 || got[0] != other {
		t.Errorf("with a timer that was waited for: %+v", got)
	}
	if got := c.dueAnyway([]*Observation{due, other}, created); len(got) != 0 {
		t.Errorf("at the end of a step at which it was not: %+v", got)
	}
}

// TestWritesBesidesThoseOfATimer is about an operator that writes a heartbeat, for which a timer is known, and something else.
func TestWritesBesidesThoseOfATimer(t *testing.T) {
	wrote := func(fields ...string) *lens.Event {
		change := &lens.Change{}
		for _, field := range fields {
			change.Fields = append(change.Fields, why.Change{Path: field})
		}
		return request(lens.Request{Verb: "patch", Resource: lens.Resource{Group: "sea.example.com", Resource: "frigates"}, Status: 200, Object: &lens.Object{Kind: "Frigate", Namespace: "default", Name: "victory"}, Change: change})
	}
	const heartbeat, position, captain = "status.seen", "status.crew[main].position", "status.crew[second].position"
	c := sailing()
	c.reference[1].rested.timer, c.timed = true, timed{}
	c.timed.add("Frigate", heartbeat)
	for about, test := range map[string]struct {
		events []*lens.Event
		want   []string
	}{
		"only the heartbeat":    {[]*lens.Event{wrote(heartbeat), wrote(heartbeat)}, nil},
		"then something else":   {[]*lens.Event{wrote(heartbeat), wrote(position)}, []string{position}},
		"both at once":          {[]*lens.Event{wrote(heartbeat), wrote(heartbeat, position)}, []string{heartbeat, position}},
		"one finding of a kind": {[]*lens.Event{wrote(position), wrote(captain), wrote("spec.sails")}, []string{position}},
	} {
		var got []string
		for _, o := range onePerKind(c.dueAnyway(restWritesIn(test.events, 1), 1)) {
			if o.Object != "Frigate default/victory" {
				t.Errorf("%s: the finding is about %s", about, o.Object)
			}
			got = append(got, o.Fields...)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", about, got, test.want)
		}
	}
}

// TestOperatorsThatFailAfterARestart is about an operator that tries to create again what it has created before it was restarted, and
// about ones that get over it.
func TestOperatorsThatFailAfterARestart(t *testing.T) {
	const failure, usual = "jobs \"log\" already exists", "no such host"
	for about, test := range map[string]struct {
		failure     string
		attempts    int // that fail
		undisturbed rested
		want        bool
		learned     []string
	}{
		"it keeps failing":             {failure, 100, rested{}, true, []string{usual}},
		"it succeeds at once":          {failure, 0, rested{}, false, []string{usual}},
		"it succeeds at last":          {failure, 9, rested{}, false, []string{usual}},
		"it also does without":         {failure, 100, failing(failure), false, []string{failure, usual}},
		"it also does in another step": {usual, 100, rested{}, false, []string{usual}},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling, c.failing = DefaultSettling, map[string]string{}
				c.o.Settling.Quiet, c.o.Settling.Unmarked = 100*time.Millisecond, 100*time.Millisecond // less than until the next attempt
				c.learnFailing([]string{usual})
				c.reference[0].rested = test.undisturbed
				restart := func() (*restarted, error) {
					r := &run{campaign: c, world: worldOf(t, true), board: newSwitchboard(c.named), activity: newActivity()}
					done := make(chan struct{})
					defer close(done)
					go failAgain(r.activity, test.failure, test.attempts, done)
					return r.afterRestart(t.Context(), 1, func(compare.Shape) []compare.Difference { return nil })
				}
				wrong, all := confirmed(restart)
				c.learnRestarts(1, all)
				if got := len(wrong) == 1 && wrong[0].Verdict == "unsettled" && strings.Contains(wrong[0].Got, test.failure); got != test.want || !got && len(wrong) > 0 {
					t.Errorf("got %+v", wrong)
				}
				expectLines(t, c.failures(), test.learned...)
				r := &run{campaign: c, world: world.Of(c.reference[1].state), board: newSwitchboard(c.named), activity: newActivity()}
				c.reference[1].shape = r.shape()
				if got := r.judge(1, failing(failure), -1); len(got) == 0 != test.want {
					t.Errorf("when a run shows the same: %+v", got)
				}
			})
		})
	}
}

// TestRunsThatBeginWithAFailingRestart are not disturbed where the restart is the finding.
func TestRunsThatBeginWithAFailingRestart(t *testing.T) {
	const failure, usual = `jobs "log" already exists`, "no such host"
	for about, test := range map[string]struct {
		checkpoint    int    // at which restarts fail
		before, after string // at what the operator fails before the disturbance, and because of it
		disturbed     bool
	}{
		"as the restart":              {1, failure, "", false},
		"not this time":               {1, "", "", true},
		"as without a restart":        {1, usual, "", true},
		"at something else":           {1, "the quota is used up", "", true},
		"a restart before":            {2, failure, "", true},
		"only after a disturbance":    {1, "", failure, true},
		"at nothing that was learned": {0, failure, "", true},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling, c.failing = DefaultSettling, map[string]string{}
				c.learnFailing([]string{usual})
				if test.checkpoint > 0 {
					c.learnRestarts(test.checkpoint, []*restarted{{fails: true, failing: []string{failure, usual}}})
				}
				r := &run{campaign: c, family: "drift", world: worldOf(t, true), board: newSwitchboard(c.named)}
				r.activity = newActivity()
				c.reference[0].shape = r.shape()
				done := make(chan struct{})
				defer close(done)
				fail := func(failure string) {
					if failure != "" {
						go failAgain(r.activity, failure, 100, done)
					}
				}
				fail(test.before)
				disturbed := false
				disturbs := family{disturb: func(*run, *Plan) (*disturbance, error) {
					return &disturbance{
						act: func(context.Context) error {
							disturbed = true
							fail(test.after)
							return nil
						},
						futile: func(context.Context) (string, error) { return "enough is known", nil },
					}, nil
				}}
				result := &outcome{}
				if err := r.carryOut(t.Context(), &Plan{Family: "drift", Step: 1}, disturbs, result); err != nil {
					t.Fatal(err)
				}
				if disturbed != test.disturbed || (result.skipped == failsAlready) == test.disturbed || len(result.wrong) > 0 {
					t.Errorf("disturbed: %v, got %+v", disturbed, result)
				}
			})
		})
	}
}

// failAgain lets an operator fail a few times, with the pauses of controller-runtime.
func failAgain(a *activity, failure string, attempts int, done <-chan struct{}) {
	for i := range attempts + 1 {
		reconcile := reconciled(lens.Reconcile{ID: 1, Error: failure})
		if i == attempts {
			reconcile = reconciled(lens.Reconcile{ID: 1})
		}
		a.see(reconcile[0])
		a.see(reconcile[1])
		select {
		case <-done:
			return
		case <-time.After(firstRetry << min(i, 17)):
		}
	}
}
