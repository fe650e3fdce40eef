// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"

	"github.com/opdock/opdock/internal/dev"
)

// An operator may run well while objects come, and exit when it is started and they are there.

// exitsAlready is why a run does not begin where such an operator cannot be started.
const exitsAlready = "the operator exits when it is started before this step, undisturbed as well: fix that first"

// exitOf returns an observation about an operator that ended when it was started at the end of a step; nil for other errors. One that
// lacks kinds says more about the cluster.
func exitOf(step int, err error) *Observation {
	var ended *dev.EndedError
	if !errors.As(err, &ended) || ended.Lacks != nil {
		return nil
	}
	return &Observation{
		Step: step, Verdict: "exit", Severity: high, Title: "The operator exits when it is started and objects exist",
		Want: "it continues with the objects that exist", Got: ended.How + ": " + lastLine(ended.Tail),
	}
}

// orDead adds the exits of an operator that does not stay up to what is wrong. Then the run has not broken down.
func (r *run) orDead(step int, wrong []*Observation, err error) ([]*Observation, error) {
	var dead *deadError
	if errors.As(err, &dead) {
		return append(wrong, r.healthOf(step, rested{})...), nil
	}
	if o := exitOf(step, err); o != nil {
		return append(wrong, o), nil
	}
	return wrong, err
}

// notBegun notes why a run of a plan has not begun. Before the first step, there is nothing that an operator could exit for.
func (result *outcome) notBegun(p *Plan, err error) {
	if o := exitOf(p.Step-1, err); o != nil && p.Step > 0 {
		o.Family = p.Family
		result.wrong = append(result.wrong, o)
		return
	}
	result.failed = err
}

// exitsBefore reports whether an operator that is started where a plan does it is known to exit.
func (c *campaign) exitsBefore(p *Plan) bool {
	if p.Variant == operatorLate {
		return c.exitsAt[p.Step+1]
	}
	return c.exitsAt[p.Step]
}

// learnRestarts learns from restarts at a checkpoint. Those at which the operator ended say nothing about fields.
func (c *campaign) learnRestarts(checkpoint int, all []*restarted) {
	lasted := slices.DeleteFunc(slices.Clone(all), func(one *restarted) bool { return one.ended })
	if len(all) > 0 && len(lasted) == 0 {
		if c.exitsAt == nil {
			c.exitsAt = map[int]bool{}
		}
		c.exitsAt[checkpoint] = true
	}
	for _, one := range lasted {
		c.mask.Learn(c.reference[checkpoint-1].shape, one.shape)
		if !one.fails { // else it excuses nothing
			c.learnFailing(one.failing)
		}
	}
	if !slices.ContainsFunc(lasted, func(one *restarted) bool { return !one.fails }) {
		c.learnRestartFailures(checkpoint, lasted)
	}
}
