// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/report"
)

// outcome is how a run ended.
type outcome struct {
	plan  *Plan
	wrong []*Observation
	story []report.Line
	// skipped is the reason why the plan cannot be judged, and failed means that the run broke
	// down.
	skipped string
	failed  error
	// excused says why a difference is not the operator's, or may not be.
	excused string
	// changed is the state after the change of the plan, before it was reverted; nil if there is none to compare. isOneWay means
	// that the API server did not accept the reversion.
	changed  *made
	isOneWay bool
	// isCompared means that the state after the change was compared with a fresh start.
	isCompared bool
	// uncompared is the reason why that state was not compared with a fresh start.
	uncompared string
	took       time.Duration
}

// execute carries out a plan.
func (c *campaign) execute(ctx context.Context, p *Plan) (result *outcome) {
	result = &outcome{plan: p}
	began := time.Now()
	defer func() { result.took = time.Since(began) }()
	one, known := families[p.Family]
	if !known {
		result.failed = fmt.Errorf("there is no family %q", p.Family)
		return result
	}
	if p.Step >= len(c.checkpoints) || p.Step >= len(c.o.Steps) {
		result.skipped = "the scenario has no such step"
		return result
	}
	if c.exitsBefore(p) {
		result.skipped = exitsAlready
		return result
	}
	if p.Variant != unchanged {
		c.runPlan(ctx, p, one, result)
	}
	if result.changed != nil { // whatever else comes of it
		c.learnEffect(p, result.changed, false)
	}
	if p.Fresh && len(result.wrong) == 0 && result.failed == nil && (result.skipped == "" || result.isOneWay) {
		c.startOver(ctx, p, result)
	}
	if len(result.wrong) > 0 || result.isOneWay && result.isCompared {
		result.skipped = "" // what is wrong counts, whatever else could not be judged
	}
	return result
}

// runPlan carries out a plan on a cluster of its own.
func (c *campaign) runPlan(ctx context.Context, p *Plan, one family, result *outcome) {
	r, err := c.newRun(ctx, c.checkpoints[p.Step], p.Variant != operatorLate)
	if err != nil {
		result.notBegun(p, err)
		return
	}
	defer func() {
		if err := r.close(); err != nil && result.failed == nil {
			result.failed = err
		}
	}()
	if err := r.showOnce(); err != nil {
		result.failed = err
		return
	}
	r.family, r.setting, r.takesBack = p.Family, c.settingOf(p), p.takesBack()
	err = r.carryOut(ctx, p, one, result)
	result.wrong, err = r.orPanicked(ctx, p.Step, result.wrong, err)
	result.wrong, err = r.orDead(p.Step, result.wrong, err)
	err = r.orUndeleted(p.Step-1, result, err)
	result.wrong = c.relevant(p.Family, result.wrong)
	if len(result.wrong) == 0 && result.skipped == "" {
		result.skipped = result.excused // what else is wrong counts
	}
	if result.isOneWay = r.changed != nil && lens.IsRejected(err); result.isOneWay {
		result.skipped = "the API server does not accept that the change is reverted"
	} else if why := whyUnjudged(err); why != "" {
		result.skipped = why
	} else if err != nil {
		result.failed = err
	}
	for _, wrong := range result.wrong {
		r.locate(p, wrong)
	}
	if len(result.wrong) > 0 {
		result.story = r.tell()
	}
	result.changed = r.changed
}

// unjudgedError is a run that cannot be judged, although nothing has broken down.
type unjudgedError struct{ reason string }

func (e *unjudgedError) Error() string { return e.reason }

// whyUnjudged returns why a run cannot be judged; empty for an error that means that it has broken down. The request that failed is
// left out: its address differs between runs.
func whyUnjudged(err error) string {
	var missing *notThereError
	var unjudged *unjudgedError
	switch {
	case errors.As(err, &missing):
		return err.Error()
	case errors.As(err, &unjudged):
		return unjudged.Error()
	case lens.IsRejected(err):
		return "the API server does not accept the change"
	}
	return ""
}

// carryOut disturbs a step, judges how it ends, and goes on with the scenario unless that is wrong.
func (r *run) carryOut(ctx context.Context, p *Plan, one family, result *outcome) error {
	begun, err := r.settle(ctx)
	if err != nil {
		return err
	}
	if r.campaign.failsAsRestartedAt(p.Step, begun) { // whatever is wrong later may follow from that
		result.skipped = failsAlready
		return nil
	}
	if result.skipped, err = r.changedMeanwhile(ctx, p, begun); err != nil || result.skipped != "" {
		return err
	}
	r.activity.take() // the effects of a mere restart were judged before
	r.log.take()
	d, err := one.disturb(r, p)
	if err != nil {
		return err
	}
	changes, _ := r.world.Changes(0)
	before := r.world.State()
	over, err := r.disturb(ctx, p, d, result)
	if err != nil {
		return err
	}
	if d.mustHit && !r.board.wasHit() {
		result.skipped = "the moment did not come again"
		return nil
	}
	reached := p.Step
	if d.act != nil && !d.afterStep {
		reached--
	}
	if d.futile != nil {
		if result.excused, err = d.futile(ctx); err != nil || result.excused != "" {
			r.blame(result, r.healthOf(reached, over)...)
			return err
		}
	}
	if !d.counts {
		changes = -1
	}
	if d.deletes {
		r.blame(result, r.deletions(p.Step)...)
	}
	if err := r.conclude(ctx, reached, over, changes, result); err != nil {
		return err
	}
	if d.may != nil {
		r.blame(result, r.campaign.replaced(reached, before, r.world.State(), d.may)...)
	}
	if d.spares {
		r.blame(result, r.tookAway(reached, before)...)
	}
	return r.goOn(ctx, reached+1, result)
}

// changedMeanwhile says what is not as it was undisturbed although nothing was disturbed yet; empty if all is. Time passes between the
// undisturbed runs and others: a schedule is due, or something that has finished is removed.
func (r *run) changedMeanwhile(ctx context.Context, p *Plan, begun rested) (string, error) {
	if p.Step == 0 || p.Variant == operatorLate {
		return "", nil
	}
	c := r.campaign
	changed := func() []*Observation { return c.relevant(r.family, c.differences(p.Step-1, r.deviations(p.Step-1))) }
	if _, err := r.settleMore(ctx, begun, func() bool { return len(changed()) == 0 }); err != nil {
		return "", err
	}
	left := changed()
	if len(left) == 0 {
		return "", nil
	}
	what := "it is " + left[0].Got
	if len(left[0].Fields) > 0 {
		what = left[0].Fields[0]
	}
	return fmt.Sprintf("%s has changed before anything was disturbed: %s", left[0].Object, what), nil
}

// disturb does the step of a plan or what takes its place, looks at the operator while it is disturbed, and ends the disturbance.
func (r *run) disturb(ctx context.Context, p *Plan, d *disturbance, result *outcome) (over rested, err error) {
	r.board.step(d.faults)
	defer r.board.calm()
	if d.act != nil {
		r.note(p.Says)
		err = d.act(ctx)
	} else {
		err = r.do(ctx, p.Step)
	}
	if err != nil {
		return over, err
	}
	if over, err = r.settle(ctx); err != nil {
		return over, err
	}
	if d.broken != nil {
		r.blame(result, d.broken(over)...)
	}
	if d.meanwhile != nil {
		if err := r.judgeMeanwhile(ctx, d.meanwhile, over, result); err != nil {
			return over, err
		}
	}
	if d.heal == nil {
		return over, nil
	}
	return r.endDisturbance(ctx, d)
}

// goOn does the remaining steps, as long as nothing is wrong.
func (r *run) goOn(ctx context.Context, step int, result *outcome) error {
	for ; step < len(r.campaign.o.Steps) && len(result.wrong) == 0; step++ {
		r.board.step(nil)
		if err := r.do(ctx, step); err != nil {
			return err
		}
		over, err := r.settle(ctx)
		if err != nil {
			return err
		}
		if err := r.conclude(ctx, step, over, -1, result); err != nil {
			return err
		}
	}
	return nil
}

// conclude judges the end of a step. A difference is checked again after a while: something may still
// be in progress.
func (r *run) conclude(ctx context.Context, step int, over rested, changes int, result *outcome) error {
	over, err := r.settleMore(ctx, over, func() bool { return r.agrees(step, changes) })
	if err != nil {
		return err
	}
	wrong := r.campaign.relevant(r.family, r.judge(step, over, changes)) // what is ignored needs no excuse
	wrong, excused := r.campaign.excuse(wrong, over, r.board.writes())
	if excused != "" {
		result.excused = excused
	}
	r.blame(result, wrong...)
	return nil
}

// blame adds to what is wrong, without what the scenario ignores: that does not end a run.
func (r *run) blame(result *outcome, wrong ...*Observation) {
	result.wrong = append(result.wrong, r.campaign.relevant(r.family, wrong)...)
}

// relevant leaves out what the scenario ignores in a family.
func (c *campaign) relevant(family string, wrong []*Observation) []*Observation {
	for _, o := range wrong {
		o.Family = family
	}
	return slices.DeleteFunc(wrong, c.ignores)
}

// confirmations is in how many replays a finding must be seen, or not be seen, to know which it is: at most three say it. Replays may
// say nothing, because a moment does not come again or a run breaks down; mostReplays is how many there are in all. One plan alone
// must not end a campaign, so these are fewer than mostBroken.
const (
	confirmations = 2
	mostReplays   = 4
)

// disturb carries out plans until there are no more, or the budget is used up.
func (c *campaign) disturb(ctx context.Context, found *gathering) {
	plans := c.plans()
	if c.o.Only != nil {
		plans = []*Plan{c.o.Only}
	}
	found.plan(plans)
	deadline := found.began.Add(c.o.Budget)
	ctx, stop := context.WithCancel(ctx) // those that are still running when it is enough
	defer stop()
	run := func(p *Plan) {
		result := c.execute(ctx, p)
		if ctx.Err() != nil {
			return
		}
		found.add(result)
		c.tell(found.progress(result, deadline))
		if found.isEnough() {
			stop()
		}
	}
	next := make(chan *Plan)
	var work sync.WaitGroup
	for range max(c.o.Parallel, 1) {
		work.Go(func() {
			for p := range next {
				run(p)
			}
		})
	}
	for ctx.Err() == nil {
		p := found.next(c.o.Budget > 0 && time.Now().After(deadline))
		if p == nil {
			break
		}
		select {
		case next <- p:
		case <-ctx.Done():
		}
	}
	close(next)
	work.Wait()
	// Findings of the last runs are confirmed as well, one after the other.
	for p := found.next(true); p != nil && ctx.Err() == nil; p = found.next(true) {
		run(p)
	}
}
