// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/report"
)

// TestOtherPlansTakeThePlaceOfRefutedOnes is about what one moment shows by chance, and others show each time.
func TestOtherPlansTakeThePlaceOfRefutedOnes(t *testing.T) {
	shows := map[string]bool{"steady": true}
	for about, test := range map[string]struct {
		plans       []string // each shows it once, and again if it is steady
		early       bool     // all of them do before the first is tried again
		interrupted bool     // after the first was refuted
		want        string
	}{
		"the second is steady":             {[]string{"chance", "steady"}, false, false, "2 of 2 steady"},
		"it was seen before":               {[]string{"chance", "steady"}, true, false, "2 of 2 steady"},
		"the third is steady":              {[]string{"chance", "chance", "steady"}, false, false, "2 of 2 steady"},
		"the third is, it was seen before": {[]string{"chance", "chance", "steady"}, true, false, "2 of 2 steady"},
		"the fourth is too late":           {[]string{"chance", "chance", "chance", "steady"}, false, false, "0 of 2 chance, flaky"},
		"none is":                          {[]string{"chance", "chance", "chance", "chance", "chance"}, false, false, "0 of 2 chance, flaky"},
		"the first is":                     {[]string{"steady", "chance"}, false, false, "2 of 2 steady"},
		"interrupted before the second":    {[]string{"chance", "steady"}, true, true, "0 of 0 steady, flaky"},
	} {
		var plans []*Plan
		for i, kind := range test.plans {
			plans = append(plans, crashAt(kind+strconv.Itoa(i)))
		}
		g := gathered(plans...)
		g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
		again := func(most int) {
			for p := g.next(true); p != nil && most > 0; p = g.next(true) {
				most--
				result := &outcome{plan: p}
				if shows[strings.TrimRight(p.At.Name, "0123456789")] {
					result.wrong = []*Observation{missing("Deployment")}
				}
				g.add(result)
			}
		}
		for i, p := range plans {
			seen := missing("Deployment")
			seen.Got = p.At.Name
			g.add(&outcome{plan: p, wrong: []*Observation{seen}, story: []report.Line{{Text: p.At.Name}}})
			switch {
			case test.interrupted && i == len(plans)-1:
				again(confirmations)
			case !test.early || i == len(plans)-1:
				again(100)
			}
		}
		all := g.result(built{}, test.interrupted)
		f := all.Report.Findings[0]
		kind := strings.TrimRight(f.Got, "0123456789")
		got := fmt.Sprintf("%d of %d %s", f.Again, f.Replays, kind)
		if f.Flaky {
			got += ", flaky"
		}
		if got != test.want || f.Done != "killed at "+f.Got || f.Story[0].Text != f.Got || all.Plans[f.ID].At.Name != f.Got {
			t.Errorf("%s: got %s, and %+v", about, got, f)
		}
		if g.ran != len(plans) || len(f.Runs) != len(plans) {
			t.Errorf("%s: %d runs, %d showed it", about, g.ran, len(f.Runs))
		}
	}
}

// TestReplaysOfPlansThatWereReplaced are no runs: they were under way when another plan took the place.
func TestReplaysOfPlansThatWereReplaced(t *testing.T) {
	a, b := crashAt("a"), crashAt("b")
	g := gathered(a, b)
	for _, p := range []*Plan{a, b} {
		g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment")}})
	}
	for range confirmations + 1 {
		g.add(&outcome{plan: a})
	}
	if f := g.findings[g.order[0]]; f.plan != b || f.Replays != 0 || g.ran != 2 || g.families["crash"].Clean != 0 {
		t.Errorf("got %+v after %d runs", f, g.ran)
	}
}

// TestPlansThatCannotBeJudged make room for others, and do not confirm what was refuted.
func TestPlansThatCannotBeJudged(t *testing.T) {
	a, b, c := crashAt("a"), crashAt("b"), crashAt("c")
	g := gathered(a, b, c)
	g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
	show := func(p *Plan) { g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment")}}) }
	for _, p := range []*Plan{a, b, c} {
		show(p)
	}
	f := g.findings[g.order[0]]
	for range mostReplays {
		g.add(&outcome{plan: g.next(true), skipped: "the moment did not come again"})
	}
	if f.plan != b {
		t.Fatalf("the next plan is %v", f.plan)
	}
	for range confirmations {
		g.add(&outcome{plan: g.next(true)})
	}
	if f.plan != c {
		t.Fatalf("the next plan is %v", f.plan)
	}
	for range mostReplays {
		g.add(&outcome{plan: g.next(true), skipped: "the moment did not come again"})
	}
	if all := g.result(built{}, false).Report; !all.Findings[0].Flaky {
		t.Errorf("got %+v", all.Findings[0])
	}
}

// TestPlansThatTakeThePlaceOfUndecidedOnes are judged by their own replays: nothing has refuted the finding before.
func TestPlansThatTakeThePlaceOfUndecidedOnes(t *testing.T) {
	const shown, clean, skipped = "shown", "clean", "skipped"
	for about, test := range map[string]struct {
		again       []string // how the replays of the second end
		interrupted bool     // after them
		want        string
	}{
		"it shows it once, and nothing more": {[]string{shown, skipped, skipped, skipped}, false, "1 of 1"},
		"it cannot be judged either":         {[]string{skipped, skipped, skipped, skipped}, false, "0 of 0, flaky"},
		"it is refuted":                      {[]string{clean, clean}, false, "0 of 2, flaky"},
		"interrupted before it":              {nil, true, "0 of 0"},
		"interrupted when it had shown it":   {[]string{shown}, true, "1 of 1"},
	} {
		a, b := crashAt("a"), crashAt("b")
		g := gathered(a, b)
		g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
		for _, p := range []*Plan{a, b} {
			g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment")}})
		}
		for range mostReplays {
			g.add(&outcome{plan: g.next(true), skipped: "the moment did not come again"})
		}
		for _, how := range test.again {
			result := &outcome{plan: g.next(true)}
			switch how {
			case shown:
				result.wrong = []*Observation{missing("Deployment")}
			case skipped:
				result.skipped = "the moment did not come again"
			}
			g.add(result)
		}
		f := g.result(built{}, test.interrupted).Report.Findings[0]
		got := fmt.Sprintf("%d of %d", f.Again, f.Replays)
		if f.Flaky {
			got += ", flaky"
		}
		if got != test.want || g.findings[g.order[0]].plan != b {
			t.Errorf("%s: got %s, want %s", about, got, test.want)
		}
	}
}
