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

// counts is what inferred records come to, for each controller and its kind. The zero value is empty.
type counts struct{ controllers map[reconciler]*counted }

// reconciler is a controller. Records that are grouped by cause and time have only one name for all kinds.
type reconciler struct{ name, kind string }

// counted holds the totals of a controller.
type counted struct {
	why.ControllerSummary
	waited, took time.Duration
}

// add counts a record.
func (c *counts) add(r *why.Record) {
	one := c.of(r.Controller, r.Object.Kind)
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

// of returns the totals of a controller. Its first records may lack the kind.
func (c *counts) of(name, kind string) *counted {
	if c.controllers == nil {
		c.controllers = map[reconciler]*counted{}
	}
	key := reconciler{name, kind}
	if one := c.controllers[key]; one != nil {
		return one
	}
	for other, one := range c.controllers {
		if other.name == name && (kind == "" || other.kind == "") {
			delete(c.controllers, other)
			one.Kind = cmp.Or(kind, other.kind)
			c.controllers[reconciler{name, one.Kind}] = one
			return one
		}
	}
	one := &counted{ControllerSummary: why.ControllerSummary{Name: name, Kind: kind, Causes: map[why.CauseType]uint64{}, Outcomes: map[why.Outcome]uint64{}}}
	c.controllers[key] = one
	return one
}

// summaries returns the totals, sorted by name and kind.
func (c *counts) summaries() []why.ControllerSummary {
	all := []why.ControllerSummary{}
	for _, one := range c.controllers {
		s := one.ControllerSummary
		s.Causes, s.Outcomes = maps.Clone(one.Causes), maps.Clone(one.Outcomes)
		s.MeanWaited, s.MeanDuration = one.waited/time.Duration(one.Reconciles), one.took/time.Duration(one.Reconciles) //nolint:gosec // a count
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b why.ControllerSummary) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}
