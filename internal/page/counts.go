// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/opdock/opdock/why"
)

// counts is what inferred records come to, for each controller. The zero value is empty.
type counts struct{ controllers map[string]*counted }

// counted holds the totals of a controller.
type counted struct {
	why.ControllerSummary
	waited, took time.Duration
}

// add counts a record.
func (c *counts) add(r *why.Record) {
	one := c.controllers[r.Controller]
	if one == nil {
		one = &counted{ControllerSummary: why.ControllerSummary{Name: r.Controller, Causes: map[why.CauseType]uint64{}, Outcomes: map[why.Outcome]uint64{}}}
		if c.controllers == nil {
			c.controllers = map[string]*counted{}
		}
		c.controllers[r.Controller] = one
	}
	one.Kind = cmp.Or(r.Object.Kind, one.Kind)
	one.Reconciles++
	one.Outcomes[r.Outcome]++
	one.Writes += uint64(r.Written) //nolint:gosec // a count
	for i := range r.Causes {
		one.Causes[r.Causes[i].Type]++
	}
	if r.Folded > 1 {
		one.Folded += uint64(r.Folded - 1) //nolint:gosec // not negative
	}
	for i := range r.Writes {
		if r.Writes[i].NoChange {
			one.NoChange++
		}
	}
	for _, finding := range r.Findings {
		switch finding.Type {
		case why.NoOp:
			one.NoOp++
		case why.SelfInflicted:
			one.SelfInflicted++
		case why.Loop:
			one.Loops++
		}
	}
	one.waited += r.Waited
	one.took += r.Duration
}

// summaries returns the totals, sorted by name.
func (c *counts) summaries() []why.ControllerSummary {
	all := []why.ControllerSummary{}
	for _, one := range c.controllers {
		s := one.ControllerSummary
		s.Causes, s.Outcomes = maps.Clone(one.Causes), maps.Clone(one.Outcomes)
		s.MeanWaited, s.MeanDuration = one.waited/time.Duration(one.Reconciles), one.took/time.Duration(one.Reconciles) //nolint:gosec // a count
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b why.ControllerSummary) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
