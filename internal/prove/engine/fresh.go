// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// A spec must lead to the same objects whether the custom resource was created with it or changed to it. So after a
// changed value was judged, a fresh cluster gets the same spec from the start, and what the operator made there is
// compared with what became of the change. Most operators agree at once, which costs one more run. Only if they do not,
// the change is made again, and both sides get more time.

// unchanged is the variant of a plan that changes nothing: the spec at the end of a step of the scenario is the one that a
// fresh cluster gets.
const unchanged = "unchanged"

// startOver compares the state after the change of a plan with the state after a fresh start with the same spec.
func (c *campaign) startOver(ctx context.Context, p *Plan, result *outcome) {
	changed := result.changed
	if p.Variant == unchanged && p.Step > 0 {
		changed = c.learnedMade(p.Step - 1)
	}
	if changed == nil || changed.over.busy || changed.over.backsOff {
		return
	}
	var hide *compare.Mask
	agree := func(fresh *made) bool {
		return c.agree(p, changed, fresh, hide)
	}
	fresh, err := c.fresh(ctx, c.sceneAt(p.Step-1, changed.state), agree, func(r *run, wrong []*Observation) {
		for _, o := range wrong {
			if o.Family = p.Family; p.Variant != unchanged { // which says so itself
				o.Done = p.Says + ". Another cluster gets the same spec from the start"
			}
			r.locate(p, o)
		}
		result.wrong, result.story = append(result.wrong, wrong...), r.tell()
	})
	if !c.isComparable(p, err, result) {
		return
	}
	c.learnEffect(p, fresh, true)
	result.isCompared = true
	if agree(fresh) {
		return
	}
	if p.Variant != unchanged {
		// What differs without the change as well has another cause.
		if hide, err = c.learnFresh(ctx, p.Step); !c.isComparable(p, err, result) || agree(fresh) {
			return
		}
	}
	if err := c.changeAgain(ctx, p, fresh, hide, result); err != nil {
		result.failed = err
	}
}

// isComparable reports whether there is a fresh start to compare with, and notes why not.
func (c *campaign) isComparable(p *Plan, err error, result *outcome) bool {
	var impossible *noStartError
	switch {
	case errors.As(err, &impossible) && p.Variant == unchanged && len(result.wrong) == 0: // else it shows what prevents it
		result.skipped = err.Error()
	case errors.As(err, &impossible):
		result.uncompared = impossible.reason // the change itself was judged
	case err != nil:
		result.failed = err
	}
	return err == nil
}

// noStartError is a spec that a fresh start cannot be compared with. It may be one that only a change leads to.
type noStartError struct{ reason string }

func (e *noStartError) Error() string { return "no fresh start to compare with: " + e.reason }

// fresh creates the custom resources of a state on a cluster that never had others. It calls unwell if the operator does not
// survive that.
func (c *campaign) fresh(ctx context.Context, as world.State, agree func(*made) bool, unwell func(*run, []*Observation)) (m *made, err error) {
	if there := present(c.before, c.o.Subjects); len(there) > 0 {
		return nil, &noStartError{there[0].GetKind() + " " + there[0].GetName() + " is there before the first step"}
	}
	r, err := c.newRun(ctx, c.checkpoints[0], true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	over, err := r.createAndSettle(ctx, c.origins(as), agree)
	if panicked, _ := r.orPanicked(ctx, 0, nil, err); len(panicked) > 0 {
		unwell(r, panicked)
	}
	var dead *deadError
	if err != nil && !errors.As(err, &dead) {
		return nil, err
	}
	m = r.made(over)
	if m.warnings, err = r.warnings(ctx); err != nil {
		return nil, err
	}
	wrong := slices.DeleteFunc(r.healthOf(0, over), func(o *Observation) bool { return o.Verdict == "unsettled" }) // it may only be slow
	if len(wrong) > 0 {
		unwell(r, wrong)
	}
	if dead != nil || len(wrong) > 0 || over.busy || over.backsOff {
		return nil, &noStartError{"the operator does not come to rest after a fresh start"}
	}
	return m, nil
}

// bring creates objects of the scenario. Those that are there before the first step, such as a namespace that the installation of the
// operator creates as well, are applied, as the scenario does.
func (r *run) bring(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, one := range objects {
		_, there := find(r.campaign.before, one)
		if there == nil {
			if err := r.create(ctx, one); err != nil {
				return err
			}
			continue
		}
		if err := r.objects.Apply(ctx, client.ApplyConfigurationFromUnstructured(one.DeepCopy()), client.FieldOwner(manager), client.ForceOwnership); err != nil {
			return fmt.Errorf("applying %s %s: %w", one.GetKind(), one.GetName(), err)
		}
	}
	return nil
}

// createAndSettle creates objects, and waits longer for what the operator makes of them if that does not agree.
func (r *run) createAndSettle(ctx context.Context, objects []*unstructured.Unstructured, agree func(*made) bool) (over rested, err error) {
	if _, err := r.settle(ctx); err != nil {
		return over, err
	}
	r.board.step(nil)
	if err := r.bring(ctx, objects); ctx.Err() != nil {
		return over, ctx.Err()
	} else if err != nil {
		return over, &noStartError{firstLine(err.Error())}
	}
	if over, err = r.settle(ctx); err != nil {
		return over, err
	}
	return r.settleMore(ctx, over, func() bool { return agree(r.made(over)) })
}

// learnFresh returns what a fresh start with the specs of the scenario changes, once for the campaign.
func (c *campaign) learnFresh(ctx context.Context, step int) (*compare.Mask, error) {
	c.freshly.Lock()
	defer c.freshly.Unlock()
	if c.freshMask != nil || c.noFresh != nil {
		return c.freshMask, c.noFresh
	}
	changed := c.learnedMade(step - 1)
	agree := func(m *made) bool { return c.agree(&Plan{Step: step}, changed, m, nil) }                 // without the change of any plan
	fresh, err := c.fresh(ctx, c.sceneAt(step-1, changed.state), agree, func(*run, []*Observation) {}) // a plan of its own shows that
	var impossible *noStartError
	if errors.As(err, &impossible) {
		c.noFresh = err
	}
	if err != nil {
		return nil, err
	}
	c.freshMask = c.maskOf(changed, fresh)
	return c.freshMask, nil
}

// maskOf hides what differs after a change from a fresh start, also in the status of the custom resources.
func (c *campaign) maskOf(changed, fresh *made) *compare.Mask {
	mask := compare.NewMask()
	mask.LearnRuns(c.madeShapes(changed, fresh))
	for _, d := range c.statusDeviates(changed, fresh, nil) {
		if mask.Fields[d.Object] == nil {
			mask.Fields[d.Object] = map[string]bool{}
		}
		mask.Fields[d.Object][d.Path] = true
	}
	return mask
}

// changeAgain repeats a change that led elsewhere than a fresh start, and judges it.
func (c *campaign) changeAgain(ctx context.Context, p *Plan, fresh *made, hide *compare.Mask, result *outcome) (err error) {
	r, err := c.newRun(ctx, c.checkpoints[p.Step], true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if p.Variant == unchanged {
		if err := r.showOnce(); err != nil {
			return err
		}
	}
	r.family = p.Family
	wrong, excused, err := r.judgeChange(ctx, p, fresh, hide)
	if wrong, err = r.orDead(p.Step-1, wrong, err); err != nil {
		return err
	}
	if len(wrong) == 0 && p.Variant == unchanged {
		result.skipped = excused // what else a plan does was judged before
	}
	for _, o := range wrong {
		o.Family = p.Family
		r.locate(p, o)
	}
	if len(wrong) > 0 {
		result.wrong, result.story = append(result.wrong, wrong...), r.tell()
	}
	return nil
}

// judgeChange carries out the change of a plan, and compares what becomes of it with a fresh start.
func (r *run) judgeChange(ctx context.Context, p *Plan, fresh *made, hide *compare.Mask) (wrong []*Observation, excused string, err error) {
	c := r.campaign
	if _, err := r.settle(ctx); err != nil {
		return nil, "", err
	}
	r.board.step(nil)
	before := r.world.State()
	about := c.changeIn(p, before)
	said, since := map[string]bool{}, time.Time{} // what was reported in the steps before counts
	if p.Variant != unchanged {
		d, err := feed(r, p)
		if err != nil {
			return nil, "", err
		}
		if said, err = r.warnings(ctx); err != nil {
			return nil, "", err
		}
		since = time.Now().Add(-time.Second) // times in events are in seconds
		r.note(about.change)
		if err := d.act(ctx); err != nil {
			return nil, "", err
		}
	}
	over, err := r.settleUntil(ctx, func() bool { return c.agree(p, r.made(rested{}), fresh, hide) })
	if err != nil {
		return nil, "", err
	}
	if err := r.lens.Flush(ctx); err != nil {
		return nil, "", err
	}
	now := r.made(over)
	found, status := c.deviates(p, now, fresh, hide), c.statusDeviates(now, fresh, hide)
	maps.Copy(said, fresh.warnings)
	reported, err := r.reports(ctx, p.Step-1, now, fresh, &differing{found, status}, said, since)
	if err != nil || reported || over.busy {
		return nil, "", err
	}
	wrong = about.unfollowed(p.Step-1, found, c.shapeOf(before), over.failing)
	if len(found) == 0 {
		wrong = about.otherStatus(p.Step-1, status)
	}
	if wrong, excused = c.excuse(wrong, over, r.board.writes()); len(wrong) > 0 && len(over.timers) > 0 {
		if field := c.looksAgain(p, now.state, over.timers); field != "" {
			return nil, "the operator may look again only after the time that " + field + " sets", nil
		}
	}
	return wrong, excused, nil
}

// intervals are fields that say how often an operator looks at something again.
var intervals = regexp.MustCompile(`(?i)(interval|refresh|poll|resync|syncperiod)`)

// looksAgain returns the field of a custom resource that tells the operator how often to look at others, if that is later than a step
// may take, and a timer is set that comes of it; empty if there is none. A change of the custom resource itself is no reason to wait, and
// steps of the scenario may have changed any of them.
func (c *campaign) looksAgain(p *Plan, state world.State, timers map[string]time.Duration) string {
	if p.Variant == unchanged {
		return ""
	}
	isDue := func(every time.Duration) bool {
		for _, after := range timers {
			if after > c.o.Settling.Bound && after <= every || after == 0 && every > longestRetry {
				return true
			}
		}
		return false
	}
	for _, subject := range c.o.Subjects {
		key, live := find(state, subject)
		if live == nil || key.String() == p.Object {
			continue
		}
		spec, _, _ := unstructured.NestedMap(live.Object, "spec")
		for _, name := range slices.Sorted(maps.Keys(spec)) {
			text, _ := spec[name].(string)
			if every, err := time.ParseDuration(text); err == nil && every > c.o.Settling.Bound && intervals.MatchString(name) && isDue(every) {
				return "spec." + name + " of " + key.String()
			}
		}
	}
	return ""
}

// changeIn describes the change of a plan.
func (c *campaign) changeIn(p *Plan, before world.State) *changing {
	if p.Variant == unchanged {
		return &changing{what: "the changes in the scenario", done: p.Says}
	}
	if p.Variant == content {
		about := &changing{what: "a change of " + p.Object, change: p.Object + " gets other content"}
		about.done = about.change + ". Another cluster gets the same content from the start"
		return about
	}
	about := &changing{what: "a change of " + values.Path(p.Path), change: p.Says, done: p.Says}
	change, err := changeOf(p.Value)
	if err != nil {
		return about
	}
	for key, object := range before {
		if key.String() == p.Object {
			about.change = p.Object + ": " + change.From(object.Object)
			about.done = about.change + ". Another cluster gets the same spec from the start"
		}
	}
	return about
}
