// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// Settling defines when a step is over.
type Settling struct {
	// Quiet is how long nothing may happen, and Unmarked the same for an operator without marked reconciles.
	Quiet, Unmarked time.Duration
	// Progress is the same while an object on the cluster reports that it is not finished.
	Progress time.Duration
	// Patience is how long nothing may happen where a mistake would cost more: at the end of undisturbed
	// steps, and before a difference is reported. 0 means a multiple of the others.
	Patience time.Duration
	// Bound is after how long a step is given up.
	Bound time.Duration
}

// DefaultSettling suits operators that do not wait for anything outside of the cluster.
var DefaultSettling = Settling{Quiet: 400 * time.Millisecond, Unmarked: 1500 * time.Millisecond, Progress: 2500 * time.Millisecond, Bound: 30 * time.Second}

// quiet is how long nothing may have happened.
func (s *Settling) quiet(marked bool) time.Duration {
	if marked {
		return s.Quiet
	}
	return s.Unmarked
}

// rested is how a step came to its end.
type rested struct {
	// busy means that it did not settle, and writes is the number of writes in the last part of the time.
	busy   bool
	writes int
	// stuck says that the operator retries something that keeps failing, with these errors, and failers are the controllers that do.
	stuck   bool
	failing []string
	failers map[string][]string
	// failsAt are the errors by namespace and name of the objects that it reconciles, as far as reconciles are marked.
	failsAt map[string]string
	// backsOff says that the operator tries again what has failed, but later than a step may take.
	backsOff bool
	// timer says that the operator does something soon by itself, which was not waited for.
	timer bool
	// timers are the controllers that have set a timer, and how long it is.
	timers map[string]time.Duration
	// unfinished are objects that say that they are not finished.
	unfinished map[string]string
}

// add is for a step that was waited for once more.
func (r *rested) add(later rested) {
	r.busy, r.stuck, r.failing, r.failers, r.failsAt, r.backsOff = r.busy || later.busy, later.stuck, later.failing, later.failers, later.failsAt, later.backsOff
	r.writes += later.writes
	r.timers = later.timers
}

// settle waits until the operator and the controllers have nothing left to do. An operator that ends is started again.
func (r *run) settle(ctx context.Context) (rested, error) { return r.settleFor(ctx, 1) }

// patience is how many times as long it is waited where a mistake would cost more: in undisturbed runs, and before something is
// called wrong.
const patience = 4

// settleFor waits for a multiple of what is usual.
func (r *run) settleFor(ctx context.Context, factor time.Duration) (rested, error) {
	return r.settleOnce(ctx, factor, nil)
}

// settleMore waits longer, unless it is enough: before something is called wrong.
func (r *run) settleMore(ctx context.Context, over rested, enough func() bool) (rested, error) {
	if enough() {
		return over, nil
	}
	later, err := r.settleUntil(ctx, enough)
	if err != nil {
		return over, err
	}
	over.add(later)
	return over, nil
}

// settleUntil waits until it is enough, or there is nothing left to wait for. Undisturbed runs follow the timers of unfinished custom
// resources, so what is compared with them does as well.
func (r *run) settleUntil(ctx context.Context, enough func() bool) (rested, error) {
	end := r.endOfTimers()
	over, err := r.settleOnce(ctx, patience, enough)
	if err != nil {
		return over, err
	}
	return r.followTimers(ctx, over, end, enough)
}

// settleOnce also ends if all has been quiet for as long as usual, and it is enough. As long as it is not, it waits for timers of
// the operator that go off within the time that a step may take: some look after their objects every half minute. Each is waited for
// once. It also waits for the next attempts after an error that undisturbed runs do not show.
func (r *run) settleOnce(ctx context.Context, factor time.Duration, enough func() bool) (rested, error) {
	s := r.campaign.o.Settling
	marked := r.campaign.isMarked()
	soon := s.quiet(marked)
	ahead := nearFuture
	if factor > 1 {
		ahead = farFuture
		s.Quiet, s.Unmarked = max(factor*s.Quiet, s.Patience), max(factor*s.Unmarked, s.Patience)
	}
	began := time.Now() // what was done just before may not have been seen yet
	horizon := began
	var expected func(string) bool
	if enough != nil {
		expected = r.campaign.isExpected
		horizon = began.Add(s.Bound + time.Second)
		s.Bound *= 2
	}
	over := began.Add(s.Bound)
	limit := time.NewTimer(s.Bound)
	defer limit.Stop()
	late := time.NewTimer(s.Bound * 3 / 4) //nolint:mnd // what happens after that counts as a loop
	defer late.Stop()
	writesBefore := 0
	for {
		now := time.Now()
		news, last, err := r.world.News()
		if err != nil {
			return rested{}, err
		}
		doing := r.activity.outlook(now, max(ahead, horizon.Sub(now)), expected)
		for _, one := range []time.Time{began, doing.last} {
			if one.After(last) {
				last = one
			}
		}
		quiet := s.quiet(marked)
		wake := last.Add(quiet).Sub(now)
		if wake <= 0 {
			unfinished := r.unfinished()
			if len(unfinished) > 0 {
				quiet = max(quiet, s.Progress)
				if hasEndingPods(r.world.State()) {
					quiet = max(quiet, patience*s.Progress)
				}
				wake = last.Add(quiet).Sub(now)
			}
			beyond := doing.retries && doing.due.After(over)
			if !doing.due.IsZero() && !beyond {
				wake = max(wake, doing.due.Sub(now)+quiet/4) //nolint:mnd // it takes a moment to begin
			}
			if enough != nil && (!marked && doing.unplanned || r.campaign.writesAside) { // some operators look after their objects only now and then
				wake = max(wake, horizon.Sub(now))
			}
			// A reconcile that waits for held events continues when they are released.
			waits := r.board.holds() && now.Sub(last) > s.Progress
			if wake <= 0 && (doing.running == 0 || waits) && !doing.blind {
				return rested{stuck: doing.stuck, failing: doing.failing, failers: doing.failers, failsAt: doing.at, timer: doing.timer, backsOff: beyond, timers: r.activity.timers(), unfinished: unfinished}, nil
			}
		}
		if enough != nil {
			probe := last.Add(soon).Sub(now)
			if probe <= 0 && doing.running == 0 && !doing.blind && enough() {
				return rested{stuck: doing.stuck, failing: doing.failing, failers: doing.failers, failsAt: doing.at, timer: doing.timer, timers: r.activity.timers(), unfinished: r.unfinished()}, nil
			}
			if probe > 0 {
				wake = min(wake, probe)
			}
		}
		done, _ := r.ended()
		pause := time.NewTimer(max(wake, 100*time.Millisecond)) //nolint:mnd // all that happens is reported before
		select {
		case <-ctx.Done():
			pause.Stop()
			return rested{}, ctx.Err()
		case <-done:
			if err := r.revive(ctx); err != nil {
				pause.Stop()
				return rested{}, err
			}
		case <-late.C:
			writesBefore = r.activity.written()
		case <-limit.C:
			pause.Stop()
			return rested{busy: true, writes: r.activity.written() - writesBefore, stuck: doing.stuck, failing: doing.failing, failers: doing.failers, failsAt: doing.at, unfinished: r.unfinished()}, nil
		case <-news:
		case <-doing.news:
		case <-pause.C:
		}
		pause.Stop()
	}
}

// unfinished are the objects that say that they are not finished, without those that are not without a disturbance either.
func (r *run) unfinished() map[string]string {
	found := map[string]string{}
	state := r.world.State()
	uids := map[string]bool{}
	for _, object := range state {
		uids[string(object.GetUID())] = true
	}
	for key, object := range state {
		if old, was := r.campaign.before[key]; was && old.GetResourceVersion() == object.GetResourceVersion() {
			continue
		}
		name, _ := compare.Name(key, object)
		status, message := apply.Status(object)
		for _, owner := range object.GetOwnerReferences() {
			if !uids[string(owner.UID)] && owner.Kind != "Node" {
				status, message = "Terminating", "its owner is gone"
			}
		}
		if (status == "InProgress" || status == "Terminating") && !r.campaign.restless[name] {
			found[name] = message
		}
	}
	return found
}

// hasEndingPods reports whether pods are about to go. Simulated nodes remove them at once, unless the node is lost, but may be late on a
// busy machine. The status of a workload counts such pods, so a step that ends too early differs from one that does not.
func hasEndingPods(state world.State) bool {
	for key, object := range state {
		if key.Group == "" && key.Kind == "Pod" && object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
			return true
		}
	}
	return false
}
