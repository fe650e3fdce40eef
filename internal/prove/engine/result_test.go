// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/report"
)

// TestResult has a finding that happens again, one that does not, a run that broke down, and one for which no time is left.
func TestResult(t *testing.T) {
	sure, flaky, broken, late := crashAt("a"), crashAt("b"), crashAt("c"), crashAt("d")
	for name, test := range map[string]struct {
		interrupted bool
		reason      string
	}{"the budget ends": {false, "the budget was used up"}, "it is interrupted": {true, "the campaign was interrupted"}} {
		t.Run(name, func(t *testing.T) {
			g := gathered(sure, flaky, broken, late)
			g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
			var results []*outcome
			for _, one := range []struct {
				plan *Plan
				kind string
				fail error
			}{{sure, "Deployment", nil}, {flaky, "Service", nil}, {broken, "", errors.New("no space left\nand more")}} {
				result := &outcome{plan: one.plan, failed: one.fail}
				if one.kind != "" {
					result.wrong = []*Observation{missing(one.kind)}
				}
				results = append(results, result)
				g.next(false)
			}
			for _, result := range results { // all are begun before the first ends
				g.add(result)
			}
			for p := g.next(true); p != nil; p = g.next(true) {
				result := &outcome{plan: p}
				if p == sure {
					result.wrong = []*Observation{missing("Deployment")}
				}
				g.add(result)
			}
			if test.interrupted {
				g.next(false) // begins a run that does not end
			}
			got := g.result(built{marked: true, digest: "abc"}, test.interrupted)
			if r := got.Report; r.Project != "ship" || !r.Reference.Marked || got.Digest != "abc" || r.Interrupted != test.interrupted {
				t.Errorf("the report is %+v, of %s", r, got.Digest)
			}
			var found []string
			for i := range got.Report.Findings {
				f := &got.Report.Findings[i]
				found = append(found, fmt.Sprintf("%s, flaky: %v, %d of %d", f.Object, f.Flaky, f.Again, f.Replays))
				if got.Plans[f.ID] == nil {
					t.Errorf("%s cannot be replayed", f.ID)
				}
			}
			if want := []string{"Deployment default/victory, flaky: false, 2 of 2", "Service default/victory, flaky: true, 0 of 2"}; !slices.Equal(found, want) {
				t.Errorf("found %q, want %q", found, want)
			}
			var left []string
			for _, one := range got.Report.NotTried {
				left = append(left, fmt.Sprintf("%s: %s (%d)", one.Family, one.Reason, one.Count))
			}
			if want := []string{"crash: a run that broke down: no space left (1)", "crash: " + test.reason + " (1)"}; !slices.Equal(left, want) {
				t.Errorf("not tried: %q, want %q", left, want)
			}
			for _, family := range got.Report.Families {
				if family.Name == "crash" && (family.Planned != 4 || family.Ran != 3 || family.Failed != 1 || family.Flaky != 1 || family.Clean != 0) {
					t.Errorf("the family is %+v", family)
				}
			}
			if got.Report.ExitCode() != 1 {
				t.Errorf("the exit code is %d", got.Report.ExitCode())
			}
		})
	}
}

// A disk that is full breaks down one run after another. What a run before saw was not confirmed, and may come from there.
func TestCampaignEndsIfRunsBreakDown(t *testing.T) {
	var plans []*Plan
	for i := range mostBroken + 4 {
		plans = append(plans, crashAt(strconv.Itoa(i)))
	}
	g := gathered(plans...)
	g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
	full := func(i int) error { return fmt.Errorf("the disk that holds /tmp/opdock-%d is full", 1000+i) }
	pull(t, g, false, plans[0])
	g.add(&outcome{plan: plans[0], failed: full(0)})
	pull(t, g, false, plans[1])
	g.add(&outcome{plan: plans[1]}) // one that does not break down
	pull(t, g, false, plans[2])
	g.add(&outcome{plan: plans[2], wrong: []*Observation{missing("Deployment")}})
	for range mostReplays { // in vain
		pull(t, g, false, plans[2])
		g.add(&outcome{plan: plans[2], failed: full(2)})
	}
	for i := mostReplays; i < mostBroken; i++ {
		pull(t, g, false, plans[i-1])
		g.add(&outcome{plan: plans[i-1], failed: full(i)})
	}
	g.add(&outcome{plan: plans[mostBroken+2]}) // it began before
	pull(t, g, false, nil)
	pull(t, g, true, nil)
	r := g.result(built{}, false).Report
	if len(r.Findings) != 1 || !r.Findings[0].Flaky || r.Broken != full(mostBroken-1).Error() || r.ExitCode() != 2 {
		t.Errorf("got %+v, with the exit code %d", r, r.ExitCode())
	}
	var left []string
	for _, one := range r.NotTried {
		left = append(left, fmt.Sprintf("%s (%d)", one.Reason, one.Count))
	}
	expectLines(t, left, "a run that broke down: the disk that holds /tmp/opdock-1000 is full (2)", "the last 5 runs broke down (4)")
}

func TestInterruptedUpgrade(t *testing.T) {
	g := gathered()
	g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
	g.skipped[upgradeFamily] = &report.NotTried{Family: upgradeFamily, What: "runs", Reason: "an earlier step failed", Count: 3}
	if left := g.result(built{}, true).Report.NotTried; len(left) != 1 || left[0].Reason != "the campaign was interrupted" {
		t.Errorf("not tried: %+v", left)
	}
}
