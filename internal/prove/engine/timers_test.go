// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

// polling is an operator that reconciles each time its timer goes off, and writes something the first few times.
type polling struct {
	run    *run
	period time.Duration
	writes int
	rings  atomic.Int64
}

func (p *polling) reconcile() {
	a := p.run.activity
	reconcile := reconciled(lens.Reconcile{ID: 1, RequeueAfter: p.period})
	a.see(reconcile[0])
	if p.rings.Load() < int64(p.writes) {
		a.see(request(lens.Request{Verb: "create", Resource: deployments, Status: 201, Reconcile: 1}))
	}
	a.see(reconcile[1])
}

// start lets the timer go off until the end of the test.
func (p *polling) start(t *testing.T) {
	t.Helper()
	done := make(chan struct{})
	p.reconcile()
	go func() {
		ticks := time.NewTicker(p.period)
		defer ticks.Stop()
		for {
			select {
			case <-ticks.C:
				p.rings.Add(1)
				p.reconcile()
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { close(done) })
}

// TestTimersOfUnfinishedObjects is about an operator that looks every ten seconds whether it may go on.
func TestTimersOfUnfinishedObjects(t *testing.T) {
	for about, test := range map[string]struct {
		period   time.Duration
		writes   int
		finished bool
		rings    int // at least
		atMost   time.Duration
	}{
		"it goes on twice":               {period: 10 * time.Second, writes: 3, rings: 3, atMost: time.Minute},
		"it never goes on":               {period: 10 * time.Second, writes: 1, rings: 1, atMost: 25 * time.Second},
		"it writes each time":            {period: 10 * time.Second, writes: 1000, rings: 3, atMost: 90 * time.Second},
		"the timer is too late":          {period: time.Minute, writes: 3, atMost: 15 * time.Second},
		"the custom resource has come":   {period: 10 * time.Second, writes: 3, finished: true, atMost: 9 * time.Second},
		"it goes on just before the end": {period: 29 * time.Second, writes: 2, rings: 2, atMost: 90 * time.Second},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling = DefaultSettling
				c.o.Settling.Unmarked = c.o.Settling.Quiet // as with marks
				r := &run{campaign: c, world: worldOf(t, test.finished), board: newSwitchboard(c.named), activity: newActivity()}
				p := &polling{run: r, period: test.period, writes: test.writes}
				p.start(t)
				began := time.Now()
				if _, err := r.settleStage(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > test.atMost {
					t.Errorf("it took %s", took)
				}
				if rings := int(p.rings.Load()); rings < test.rings {
					t.Errorf("the step was over when the timer had gone off %d times", rings)
				}
			})
		})
	}
}

// TestDisturbedRunsFollowTimersAsUndisturbedOnes is about an operator that looks now and then whether it may go on, and is finished
// after a few times.
func TestDisturbedRunsFollowTimersAsUndisturbedOnes(t *testing.T) {
	for about, test := range map[string]struct {
		period   time.Duration
		rounds   int // until it is enough
		writes   int
		finished bool
		restless bool
		want     bool
		atMost   time.Duration
	}{
		"three rounds":                        {period: 15 * time.Second, rounds: 3, writes: 4, want: true, atMost: time.Minute},
		"just before the end":                 {period: 29 * time.Second, rounds: 2, writes: 3, want: true, atMost: 90 * time.Second},
		"of a resource that is never ready":   {period: 15 * time.Second, rounds: 3, writes: 4, restless: true, want: true, atMost: time.Minute},
		"it writes each time without success": {period: 10 * time.Second, rounds: 1000, writes: 1000, atMost: 150 * time.Second},
		"it leads to nothing":                 {period: 15 * time.Second, rounds: 1000, writes: 1, atMost: time.Minute},
		"of a resource that says it is ready": {period: 15 * time.Second, rounds: 3, writes: 4, finished: true, atMost: 45 * time.Second},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling = DefaultSettling
				c.o.Settling.Unmarked = c.o.Settling.Quiet // as with marks
				c.restless["Frigate default/victory"] = test.restless
				r := &run{campaign: c, world: worldOf(t, test.finished), board: newSwitchboard(c.named), activity: newActivity()}
				p := &polling{run: r, period: test.period, writes: test.writes}
				p.start(t)
				began := time.Now()
				enough := func() bool { return int(p.rings.Load()) >= test.rounds }
				over, err := r.settleMore(t.Context(), rested{}, enough)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > test.atMost {
					t.Errorf("it took %s", took)
				}
				if enough() != test.want || over.busy {
					t.Errorf("it was judged when the timer had gone off %d times: %+v", p.rings.Load(), over)
				}
			})
		})
	}
}

// TestWritesAside is about operators of which some controllers are not controller-runtime's: what they plan is not known.
func TestWritesAside(t *testing.T) {
	for _, aside := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := sailing()
			c.o.Settling = DefaultSettling
			c.writesAside = aside
			r := &run{campaign: c, world: worldOf(t, true), board: newSwitchboard(c.named), activity: newActivity()}
			(&polling{run: r, period: time.Hour}).start(t) // a marked controller
			began := time.Now()
			enough := func() bool { return time.Since(began) > 20*time.Second }
			if _, err := r.settleMore(t.Context(), rested{}, enough); err != nil {
				t.Fatal(err)
			}
			if enough() != aside {
				t.Errorf("with writes aside %v, it was judged after %s", aside, time.Since(began))
			}
		})
	}
}

// worldOf is a world with a Frigate.
func worldOf(t *testing.T, finished bool) *world.World {
	t.Helper()
	object := frigate()
	status := "False"
	if finished {
		status = "True"
	}
	object.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}}
	return world.Of(world.State{{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}: object})
}

// TestTimersAfterOtherReconciles is about an operator that was reconciled several times because of events, before its timer went off.
func TestTimersAfterOtherReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const period = 20 * time.Second
		reconcile := reconciled(lens.Reconcile{ID: 1, RequeueAfter: period})
		a := following(repeat(mostTimers+1, reconcile)...)
		if got := a.outlook(time.Now(), farFuture, nil); !got.timer || !got.due.IsZero() {
			t.Errorf("before it goes off: there is a timer: %v; it is waited for: %v", got.timer, !got.due.IsZero())
		}
		time.Sleep(period)
		for _, e := range reconcile {
			a.see(e)
		}
		if got := a.outlook(time.Now(), farFuture, nil); got.timer {
			t.Error("it went off and led to nothing, and may still do something")
		}
	})
}

// TestTimersAtRestAreWaitedFor is about timers because of which writes after a restart do not count. What they write must be learned.
func TestTimersAtRestAreWaitedFor(t *testing.T) {
	for period, want := range map[time.Duration]bool{20 * time.Second: true, 45 * time.Second: true, 59 * time.Second: true, 2 * time.Minute: false} {
		a := following(reconciled(lens.Reconcile{ID: 1, RequeueAfter: period})...)
		if got := a.outlook(time.Now(), farFuture, nil).timer; got != want {
			t.Errorf("a timer of %s is known: %v", period, got)
		}
		if got := !a.timerAtRest().IsZero(); got != want {
			t.Errorf("a timer of %s is waited for: %v", period, got)
		}
	}
}

// TestSpinning is about an operator that reconciles without a pause.
func TestSpinning(t *testing.T) {
	for about, test := range map[string]struct {
		period time.Duration
		wait   time.Duration
		writes int
		want   bool
	}{
		"each millisecond":              {period: time.Millisecond, wait: time.Second, want: true},
		"each second":                   {period: time.Second, wait: time.Minute},
		"ten times a second":            {period: 100 * time.Millisecond, wait: time.Minute},
		"each millisecond, and writes":  {period: time.Millisecond, wait: time.Second, writes: 1 << 20},
		"each millisecond, for a while": {period: time.Millisecond, wait: 20 * time.Millisecond},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &run{campaign: sailing(), activity: newActivity()}
				p := &polling{run: r, period: test.period, writes: test.writes}
				p.start(t)
				time.Sleep(test.wait)
				synctest.Wait()
				wrong := r.healthOf(0, rested{})
				if got := len(wrong) == 1 && wrong[0].Verdict == "loop" && strings.Contains(wrong[0].Got, "default/victory"); got != test.want {
					t.Errorf("got %+v", wrong)
				}
			})
		})
	}
}
