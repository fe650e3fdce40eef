// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/report"
)

// crashAt is a plan.
func crashAt(name string) *Plan {
	return &Plan{Family: "crash", Variant: "after", At: &Moment{Verb: "apply", Resource: "deployments", Name: name, Nth: 1}, Says: "killed at " + name}
}

// missing is an observation about a kind.
func missing(kind string) *Observation {
	return &Observation{Family: "crash", Verdict: "end-state", Severity: high, Title: "A " + kind + " is missing at the end", Object: kind + " default/victory"}
}

func gathered(plans ...*Plan) *gathering {
	g := newGathering(sailing(), time.Now())
	g.plan(plans)
	return g
}

// pull takes the next plan, which has to be the given one.
func pull(t *testing.T, g *gathering, late bool, want *Plan) {
	t.Helper()
	got := g.next(late)
	if got != want {
		t.Fatalf("the next plan is %+v, want %+v", got, want)
	}
}

func TestFindingsAreConfirmed(t *testing.T) {
	for name, test := range map[string]struct {
		again          []bool // whether it happens again, as often as it is tried
		replays, times int
	}{
		"twice in a row":     {[]bool{true, true}, 2, 2},
		"twice of three":     {[]bool{false, true, true}, 3, 2},
		"once of three":      {[]bool{true, false, false}, 3, 1},
		"never, tried twice": {[]bool{false, false}, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := crashAt("a")
			g := gathered(p)
			pull(t, g, false, p)
			g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment")}})
			for _, happens := range test.again {
				pull(t, g, true, p) // even after the budget
				result := &outcome{plan: p}
				if happens {
					result.wrong = []*Observation{missing("Deployment")}
				}
				g.add(result)
			}
			pull(t, g, false, nil)
			f := g.findings[missing("Deployment").cause()]
			if f.Replays != test.replays || f.Again != test.times {
				t.Errorf("it happened again in %d of %d, want %d of %d", f.Again, f.Replays, test.times, test.replays)
			}
			if g.ran != 1 || g.families["crash"].Ran != 1 {
				t.Errorf("%d runs, want 1: replays are no runs of the plan", g.ran)
			}
		})
	}
}

func TestEachCauseIsFoundOnce(t *testing.T) {
	a, b := crashAt("a"), crashAt("b")
	g := gathered(a, b)
	g.next(false)
	g.next(false)
	g.add(&outcome{plan: a, wrong: []*Observation{missing("Deployment"), missing("Service")}, story: []report.Line{{Text: "killed"}}})
	g.add(&outcome{plan: b, wrong: []*Observation{missing("Deployment")}})
	if len(g.order) != 1 {
		t.Fatalf("%d findings, want 1: what else is missing in a run follows from the first", len(g.order))
	}
	f := g.findings[g.order[0]]
	if !slices.Equal(f.Runs, []string{a.ID(), b.ID()}) || f.plan != a || f.Done != a.Says || len(f.Story) != 1 {
		t.Errorf("got %+v", f)
	}
	if f.Replay != "opdock prove --replay "+f.ID {
		t.Errorf("it is shown again by %q", f.Replay)
	}
	if got := g.families["crash"]; got.Ran != 2 || got.Clean != 0 || got.Verdicts["end-state"] != 2 {
		t.Errorf("got %+v", got)
	}
	// Another verdict in the same run is another finding, and one replay serves both.
	panics := &Observation{Family: "crash", Verdict: "panic", Title: "P"}
	c := crashAt("c")
	g.add(&outcome{plan: c, wrong: []*Observation{panics, missing("Ingress")}})
	if len(g.order) != 3 {
		t.Errorf("%d findings, want 3", len(g.order))
	}
}

func TestIDsOfFindingsStay(t *testing.T) {
	id := func() string {
		p := crashAt("a")
		g := gathered(p)
		g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment")}})
		return g.findings[g.order[0]].ID
	}
	if first, second := id(), id(); first != second || len(first) != len("crash-")+6 {
		t.Errorf("got %s and %s", first, second)
	}
}

func TestRunsThatSayNothing(t *testing.T) {
	var plans []*Plan
	for i := range 5 {
		plans = append(plans, crashAt(strconv.Itoa(i)))
	}
	g := gathered(plans...)
	g.add(&outcome{plan: plans[4], uncompared: "it cannot be created"})
	g.add(&outcome{plan: plans[0], skipped: "the moment did not come again"})
	g.add(&outcome{plan: plans[1], skipped: "the moment did not come again"})
	g.add(&outcome{plan: plans[2], failed: errors.New("no space left\nand more")})
	g.add(&outcome{plan: plans[3]})
	var got []string
	for _, one := range g.skipped {
		got = append(got, fmt.Sprintf("%s %d %s: %s", one.Family, one.Count, one.What, one.Reason))
	}
	slices.Sort(got)
	expectLines(t, got, "crash 1 comparisons with a fresh start: it cannot be created", "crash 1 runs: a run that broke down: no space left",
		"crash 2 runs: the moment did not come again")
	if f := g.families["crash"]; f.Planned != 5 || f.Ran != 5 || f.Failed != 3 || f.Clean != 2 {
		t.Errorf("got %+v", f)
	}
}

func TestWhatIsIgnoredIsClean(t *testing.T) {
	p := crashAt("a")
	g := gathered(p)
	g.campaign.o.Ignores = func(o *Observation) string {
		if o.Object == "Service default/victory" {
			return "another team makes it"
		}
		return ""
	}
	g.add(&outcome{plan: p, wrong: []*Observation{missing("Service")}})
	if f := g.families["crash"]; f.Clean != 1 || len(g.findings) > 0 {
		t.Errorf("got %+v and %d findings", f, len(g.findings))
	}
	b := crashAt("b")
	g.add(&outcome{plan: b, wrong: []*Observation{missing("Service"), missing("Deployment")}})
	if len(g.findings) != 1 || g.findings[missing("Deployment").cause()] == nil {
		t.Errorf("got %v, want what is not ignored", g.order)
	}
}

func TestBudgetEndsNewRuns(t *testing.T) {
	a, b := crashAt("a"), crashAt("b")
	g := gathered(a, b)
	pull(t, g, false, a)
	pull(t, g, true, nil)
	pull(t, g, false, b)
	pull(t, g, false, nil)
}

// Confirming what was found does not count.
func TestRunsAreLimited(t *testing.T) {
	first, second, third := crashAt("a"), crashAt("b"), crashAt("c")
	g := gathered(first, second, third)
	g.campaign.o.Runs, g.campaign.o.Operator.Project = 2, &project.Project{Name: "ship"}
	pull(t, g, false, first)
	g.add(&outcome{plan: first, wrong: []*Observation{missing("Deployment")}})
	pull(t, g, false, first)
	g.add(&outcome{plan: first})
	pull(t, g, false, first)
	g.add(&outcome{plan: first})
	pull(t, g, false, second)
	g.add(&outcome{plan: second})
	pull(t, g, false, nil)
	left := g.result(built{}, false).Report.NotTried
	if want := []report.NotTried{{Family: "crash", What: "runs", Reason: "the number of runs is limited", Count: 1}}; !slices.Equal(left, want) {
		t.Errorf("not tried: %+v, want %+v", left, want)
	}
}

func TestUndisturbedFindingsNeedNoReplay(t *testing.T) {
	g := gathered()
	g.campaign.checkpoints = []string{"0", "1", "2"}
	g.addUndisturbed([]*Observation{{Verdict: "rest-writes", Severity: medium, Title: "T", Step: 1}})
	f := g.findings[g.order[0]]
	if f.Family != "undisturbed" || f.Done != `Step "change", undisturbed` || f.Replays != 1 || f.Again != 1 {
		t.Errorf("got %+v", f)
	}
	if family := g.families["undisturbed"]; family.Ran != referenceRuns+2 || family.Clean != family.Ran-1 || family.Verdicts["rest-writes"] != 1 {
		t.Errorf("got %+v", family)
	}
	pull(t, g, false, nil)
}

// TestReplaysThatSayNothing are repeated: otherwise what was seen once would count like what was confirmed, and what was confirmed
// once like what was refuted.
func TestReplaysThatSayNothing(t *testing.T) {
	const shown, clean, skipped, failed = "shown", "clean", "skipped", "failed"
	for name, test := range map[string]struct {
		again       []string // how the replays end, until there is none
		interrupted bool     // after them
		want        string
	}{
		"all of them":                  {[]string{skipped, failed, skipped, skipped}, false, "0 of 0, flaky"},
		"before it is confirmed":       {[]string{skipped, shown, failed, shown}, false, "2 of 2"},
		"after it was confirmed once":  {[]string{shown, skipped, skipped, skipped}, false, "1 of 1"},
		"after it was refuted once":    {[]string{clean, skipped, skipped, skipped}, false, "0 of 1, flaky"},
		"before it is refuted":         {[]string{skipped, clean, clean}, false, "0 of 2, flaky"},
		"nobody waits for the replays": {nil, true, "0 of 0"},
		"nobody waits for the second":  {[]string{clean}, true, "0 of 1, flaky"},
	} {
		t.Run(name, func(t *testing.T) {
			p := crashAt("a")
			g := gathered(p)
			g.campaign.o.Operator.Project = &project.Project{Name: "ship"}
			pull(t, g, false, p)
			g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment")}})
			for _, how := range test.again {
				pull(t, g, true, p)
				result := &outcome{plan: p}
				switch how {
				case shown:
					result.wrong = []*Observation{missing("Deployment")}
				case skipped:
					result.skipped = "the moment did not come again"
				case failed:
					result.failed = errors.New("no space left")
				}
				g.add(result)
			}
			if !test.interrupted {
				pull(t, g, true, nil)
			}
			f := g.result(built{}, test.interrupted).Report.Findings[0]
			got := fmt.Sprintf("%d of %d", f.Again, f.Replays)
			if f.Flaky {
				got += ", flaky"
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestFindingsOfSeveralRuns are none of an accident, unless replays refuted them.
func TestFindingsOfSeveralRuns(t *testing.T) {
	for about, test := range map[string]struct {
		again, replays, runs int
		flaky                bool
	}{
		"three runs, and no replay":             {0, 0, 3, false},
		"three runs, refuted once":              {0, 1, 3, false},
		"three runs, refuted twice":             {0, 2, 3, true},
		"three runs, confirmed and refuted":     {1, 3, 3, true},
		"three runs, confirmed twice of three":  {2, 3, 3, false},
		"two runs, refuted twice":               {0, 2, 2, true},
		"two runs, confirmed once, then no one": {1, 1, 2, false},
	} {
		f := &finding{Finding: report.Finding{Again: test.again, Replays: test.replays, Runs: make([]string, test.runs)}}
		if got := f.isFlaky(false, false); got != test.flaky {
			t.Errorf("%s: flaky: %v", about, got)
		}
	}
}

// TestOnePlanEndsNoCampaign is about a plan whose replays break down, each of them.
func TestOnePlanEndsNoCampaign(t *testing.T) {
	p, other := crashAt("a"), crashAt("b")
	g := gathered(p, other)
	pull(t, g, false, p)
	g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment")}})
	for range mostReplays {
		pull(t, g, false, p)
		g.add(&outcome{plan: p, failed: errors.New("it does not stop")})
	}
	pull(t, g, false, other)
}

// TestOneFindingIsEnough is about campaigns that are to end at the first one, once it was confirmed.
func TestOneFindingIsEnough(t *testing.T) {
	a, b := crashAt("a"), crashAt("b")
	g := gathered(a, b, crashAt("c"))
	g.campaign.o.FailFast = true
	pull(t, g, false, a)
	g.add(&outcome{plan: a, wrong: []*Observation{missing("Deployment")}})
	for i := range confirmations {
		if g.isEnough() {
			t.Fatalf("it was confirmed %d times only", i)
		}
		pull(t, g, false, a)
		g.add(&outcome{plan: a, wrong: []*Observation{missing("Deployment")}})
	}
	if !g.isEnough() {
		t.Error("it goes on")
	}
	pull(t, g, false, nil)
	g.campaign.o.FailFast = false
	if pull(t, g, false, b); g.isEnough() {
		t.Error("all findings are wanted")
	}
	g.campaign.o.FailFast = true
	undisturbed := gathered(crashAt("a"))
	undisturbed.campaign.o.FailFast = true
	undisturbed.addUndisturbed([]*Observation{missing("Deployment")})
	if pull(t, undisturbed, false, nil); !undisturbed.isEnough() {
		t.Error("what shows undisturbed needs no confirmation")
	}
}

// One run may show several findings. It is tried again as often as for one: otherwise what happens rarely seems to be confirmed.
func TestFindingsOfOneRunAreConfirmedTogether(t *testing.T) {
	p := crashAt("victory")
	g := gathered(p)
	pull(t, g, false, p)
	other := &Observation{Family: "crash", Verdict: "counts", Severity: medium, Title: "A Job is created that is not undisturbed", Object: "Job default/a"}
	g.add(&outcome{plan: p, wrong: []*Observation{missing("Deployment"), other}})
	tried := 0
	for next := g.next(true); next != nil; next = g.next(true) {
		if tried++; tried > mostReplays {
			t.Fatal("it is tried again and again")
		}
		g.add(&outcome{plan: p})
	}
	if tried != confirmations {
		t.Errorf("tried %d times until neither can be confirmed, want %d", tried, confirmations)
	}
}
