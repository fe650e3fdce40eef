// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
)

// restarts starts the operator at each checkpoint, and checks that it does not change finished
// objects. Runs begin in the same way, so such changes are masked there and reported here.
func (c *campaign) restarts(ctx context.Context) (found []*Observation) {
	var mutex sync.Mutex
	var work sync.WaitGroup
	places := make(chan struct{}, max(c.o.Parallel, 1))
	for i := 1; i < len(c.checkpoints); i++ {
		want := c.reference[i-1].shape
		differences := func(shape compare.Shape) []compare.Difference {
			mutex.Lock()
			defer mutex.Unlock()
			return c.mask.Differences(want, shape)
		}
		work.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			wrong, all := confirmed(func() (*restarted, error) { return c.restart(ctx, i, differences) })
			mutex.Lock()
			defer mutex.Unlock()
			found = append(found, onePerKind(c.dueAnyway(wrong, i-1))...)
			c.learnRestarts(i, all)
		})
	}
	work.Wait()
	return found
}

// restarted is the result of a restart.
type restarted struct {
	wrong []*Observation
	shape compare.Shape
	// failing are the errors at which the operator is stuck, and fails says that it is not without the restart.
	failing []string
	fails   bool
	// ended says that the operator did not stay up. Then there is nothing to compare.
	ended bool
}

// confirmed does something once more if something is wrong, and returns what was wrong both times: on a busy machine, controllers
// may be late once. A restart that fails says nothing; it shows in the runs that begin there.
func confirmed(do func() (*restarted, error)) (wrong []*Observation, all []*restarted) {
	first, err := do()
	if err != nil {
		return nil, nil
	}
	if len(first.wrong) == 0 {
		return nil, []*restarted{first}
	}
	second, err := do()
	if err != nil {
		return first.wrong, []*restarted{first}
	}
	return slices.DeleteFunc(first.wrong, func(o *Observation) bool {
		return !slices.ContainsFunc(second.wrong, func(other *Observation) bool { return other.cause() == o.cause() })
	}), []*restarted{first, second}
}

// restart starts the operator at a checkpoint. What differs is looked at again after a while: something may not have ended yet.
func (c *campaign) restart(ctx context.Context, i int, differences func(compare.Shape) []compare.Difference) (result *restarted, err error) {
	r, err := c.newRun(ctx, c.checkpoints[i], true)
	if o := exitOf(i-1, err); o != nil {
		return &restarted{wrong: []*Observation{o}, ended: true}, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	result, err = r.afterRestart(ctx, i, differences)
	if dead := (*deadError)(nil); errors.As(err, &dead) {
		same := func(a, b *Observation) bool { return a.cause() == b.cause() } // it exited again and again
		return &restarted{wrong: slices.CompactFunc(r.healthOf(i-1, rested{}), same), ended: true}, nil
	}
	return result, err
}

// afterRestart waits for what an operator does that was started at a checkpoint.
func (r *run) afterRestart(ctx context.Context, i int, differences func(compare.Shape) []compare.Difference) (result *restarted, err error) {
	c := r.campaign
	over, err := r.settle(ctx)
	if err != nil {
		return nil, err
	}
	shape := func() compare.Shape { return c.shapeOf(r.world.State()) }
	if over, err = r.settleMore(ctx, over, func() bool { return len(differences(shape())) == 0 }); err != nil {
		return nil, err
	}
	if c.failsRestarted(i-1, over) {
		r.activity.heal() // the next attempt may succeed
		later, err := r.settleFor(ctx, patience)
		if err != nil {
			return nil, err
		}
		over.add(later)
	}
	result = &restarted{wrong: r.healthOf(i-1, over), shape: shape(), failing: over.failing}
	if result.fails = len(result.wrong) == 0 && c.failsRestarted(i-1, over); result.fails { // else it is known why
		result.wrong = append(result.wrong, &Observation{
			Step: i - 1, Verdict: "unsettled", Severity: medium, Title: "After a restart the operator keeps failing",
			Want: "nothing left to do, as before the restart", Got: failsEachTime(over),
		})
	}
	for _, d := range differences(result.shape) {
		result.wrong = append(result.wrong, &Observation{
			Step: i - 1, Verdict: "rest-writes", Object: d.Object, Fields: []string{d.Path}, Want: d.Want, Got: d.Got,
			Title: "A restart of the operator changes finished objects", Severity: high,
		})
	}
	if r.activity.written() > 0 && len(result.wrong) == 0 {
		if err := r.lens.Flush(ctx); err != nil {
			return nil, err
		}
		result.wrong = r.restWrites(i - 1)
	}
	return result, nil
}

// failsRestarted reports whether an operator is stuck that was started at the end of a step, although it is not stuck there
// otherwise, and at no such error in other steps.
//
// A timer may lead to the same error a little later. It was waited for at the end of one step only.
func (c *campaign) failsRestarted(step int, over rested) bool {
	before := c.reference[step].rested
	return over.stuck && !over.busy && !before.stuck && (!before.timer || step+1 == c.fullest()) && !c.failsAsUndisturbed(over)
}

func failsEachTime(over rested) string {
	const text = "it fails each time it reconciles"
	if len(over.failing) == 0 {
		return text
	}
	return text + ": " + shortened(firstLine(over.failing[0]))
}

// dueAnyway leaves out what an operator with a timer would have written without a restart, a little later. That is only known at the
// end of the step at which the timer was waited for; elsewhere it may be anything.
func (c *campaign) dueAnyway(wrong []*Observation, step int) []*Observation {
	known := c.timed != nil && step+1 == c.fullest()
	return slices.DeleteFunc(wrong, func(o *Observation) bool {
		return c.reference[step].rested.timer && o.Verdict == "rest-writes" && (!known || c.timed.has(o))
	})
}

// writesAtRest is the title of a write after a restart.
const writesAtRest = "After a restart the operator writes although nothing has changed"

// onePerKind leaves out further writes after a restart to objects of the same kind: they mostly have one cause.
func onePerKind(wrong []*Observation) []*Observation {
	seen := map[string]bool{}
	return slices.DeleteFunc(wrong, func(o *Observation) bool {
		kind, _, _ := strings.Cut(o.Object, " ")
		again := o.Title == writesAtRest && seen[kind]
		seen[kind] = seen[kind] || o.Title == writesAtRest
		return again
	})
}

// restWrites are the writes of an operator that had nothing to do.
func (r *run) restWrites(step int) []*Observation { return restWritesIn(r.events(0), step) }

// restWritesIn returns one observation for all writes that change the same fields of a kind. A timer may lead to some of them only.
func restWritesIn(events []*lens.Event, step int) (wrong []*Observation) {
	seen := map[string]bool{}
	for _, e := range events {
		w := e.Request
		if w == nil || !w.IsWrite() || neverEnds(w.Resource) || w.Refused() || w.Change == nil || w.Change.None || w.Object == nil || isElection(w) {
			continue
		}
		var fields []string
		for _, one := range w.Change.Fields {
			fields = append(fields, one.Path)
		}
		what := w.Object.Kind + "|" + inBrackets.ReplaceAllString(strings.Join(fields, "|"), "[]")
		if seen[what] {
			continue
		}
		seen[what] = true
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "rest-writes", Severity: medium, Object: nameOf(w.Object.Kind, w.Object.Namespace, w.Object.Name), Fields: fields,
			Title: writesAtRest, Want: "no write", Got: w.Verb + " of " + strings.Join(fields, ", "),
			Where: linesOf(w.Source, w.Verb+" "+w.Resource.Resource),
		})
	}
	return wrong
}
