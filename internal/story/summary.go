// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/opdock/opdock/why"
)

// count adds a record to what is known of its controller.
func (t *Teller) count(r *why.Record) {
	c := t.controllers[r.Controller]
	if c == nil {
		c = &counted{ControllerSummary: why.ControllerSummary{Name: r.Controller, Causes: map[why.CauseType]uint64{}, Outcomes: map[why.Outcome]uint64{}}}
		t.controllers[r.Controller] = c
	}
	c.Kind = cmp.Or(r.Object.Kind, c.Kind)
	c.Reconciles++
	c.Outcomes[r.Outcome]++
	c.Writes += uint64(r.Written) //nolint:gosec // a count
	for i := range r.Causes {
		c.Causes[r.Causes[i].Type]++
	}
	if r.Folded > 1 {
		c.Folded += uint64(r.Folded - 1) //nolint:gosec // not negative
	}
	for i := range r.Writes {
		if r.Writes[i].NoChange {
			c.NoChange++
		}
	}
	for _, finding := range r.Findings {
		switch finding.Type {
		case why.NoOp:
			c.NoOp++
		case why.SelfInflicted:
			c.SelfInflicted++
		case why.Loop:
			c.Loops++
		}
	}
	c.waited += r.Waited
	c.took += r.Duration
}

// counted is what was counted of a controller.
type counted struct {
	why.ControllerSummary
	waited, took time.Duration
}

// Controllers returns what was counted of each controller.
func (t *Teller) Controllers() []why.ControllerSummary {
	all := []why.ControllerSummary{}
	for _, c := range t.controllers {
		s := c.ControllerSummary
		s.Causes, s.Outcomes = maps.Clone(c.Causes), maps.Clone(c.Outcomes)
		s.MeanWaited, s.MeanDuration = c.waited/time.Duration(c.Reconciles), c.took/time.Duration(c.Reconciles)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b why.ControllerSummary) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
