// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/opdock/opdock/internal/prove/report"
)

// blind is what no campaign on simulated pods can see.
var blind = []string{
	"communication between the operator and its application: simulated pods run no containers",
	"calls to anything outside of the cluster, such as clouds and DNS",
	"several replicas of the operator at once, and leader election",
}

// built describes the operator's binary in a report.
type built struct {
	marked bool
	digest string
}

// result puts the report together.
func (g *gathering) result(of built, interrupted bool) *Result {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	c := g.campaign
	r := &report.Report{
		Format: report.Format, Project: c.o.Operator.Project.Name, Began: g.began, Took: time.Since(g.began), Budget: c.o.Budget, Seed: c.o.Seed, Parallel: c.o.Parallel,
		Reference: report.Reference{Runs: c.undisturbedRuns, Writes: c.writes, Masked: c.mask.Size(), Marked: of.marked, Failing: c.failures(), Unfinished: c.unfinishedAtRest(), Kept: c.keptClaims}, Blind: blind, Interrupted: interrupted,
	}
	if g.isBrokenLocked() {
		r.Broken = g.broke
	}
	for i, s := range c.reference {
		r.Steps = append(r.Steps, c.o.Steps[i].Name)
		r.Reference.Objects = max(r.Reference.Objects, len(s.shape.Objects))
	}
	plans := map[string]*Plan{}
	for _, cause := range g.order {
		f := g.findings[cause]
		if f.plan != nil && f.isFlaky(g.isBrokenLocked(), interrupted) {
			f.Flaky = true
			g.families[f.Family].Flaky++
		}
		if f.plan != nil {
			plans[f.ID] = f.plan
		}
		r.Findings = append(r.Findings, f.Finding)
	}
	for _, name := range append([]string{"undisturbed"}, Families...) {
		family := g.families[name]
		if family.Planned > 0 {
			r.Families = append(r.Families, *family)
		}
	}
	for _, family := range Families {
		// This includes runs that had begun when the campaign ended.
		count := g.families[family].Planned - g.families[family].Ran
		if count <= 0 || family == upgradeFamily {
			continue
		}
		reason := "the budget was used up"
		switch {
		case interrupted:
			reason = "the campaign was interrupted"
		case g.isBrokenLocked():
			reason = fmt.Sprintf("the last %d runs broke down", g.broken)
		case g.isEnoughLocked():
			reason = "one finding was enough"
		case g.isLastLocked():
			reason = "the number of runs is limited"
		}
		r.NotTried = append(r.NotTried, report.NotTried{Family: family, What: "runs", Reason: reason, Count: count})
	}
	if one := g.skipped[upgradeFamily]; one != nil && interrupted {
		one.Reason = "the campaign was interrupted"
	}
	for _, one := range g.skipped {
		r.NotTried = append(r.NotTried, *one)
	}
	if c.o.Only == nil {
		r.NotTried = append(r.NotTried, c.unplanned...)
	}
	slices.SortFunc(r.NotTried, func(a, b report.NotTried) int {
		return cmp.Or(cmp.Compare(slices.Index(Families, a.Family), slices.Index(Families, b.Family)), cmp.Compare(a.Reason, b.Reason))
	})
	r.NoEffect = c.withoutEffect()
	return &Result{Report: r, Plans: plans, Digest: of.digest}
}
