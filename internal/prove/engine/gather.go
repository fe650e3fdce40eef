// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/prove/report"
)

// gathering puts together what runs find: each cause once, however many runs show it.
type gathering struct {
	campaign *campaign
	began    time.Time

	mutex    sync.Mutex
	waiting  []*Plan
	again    []*Plan // findings that are to be confirmed
	families map[string]*report.Family
	findings map[string]*finding
	order    []string
	skipped  map[string]*report.NotTried
	tried    map[string]bool // plans that were run, by their IDs
	planned  int
	begun    int
	ran      int
	// broken is how many of the last runs broke down one after another, and broke why the last one did.
	broken int
	broke  string
}

// mostBroken is how many runs may break down one after another. More of them have a cause that the next run has as well,
// such as a full disk.
const mostBroken = 5

// finding is a cause, and the runs that show it.
type finding struct {
	report.Finding
	plan *Plan // the one that is run again
	// queued is how often the plan was to be run again.
	queued int
	// others are further runs that show it, and adopted is how many of them took the place of a plan that was refuted or
	// could not be judged. refuted says that one of those plans was refuted.
	others  []showing
	adopted int
	refuted bool
}

// showing is a run that shows a finding.
type showing struct {
	plan  *Plan
	seen  *Observation
	story []report.Line
}

// mostAdopted is how many further plans are run again if the first one was refuted or could not be judged: what one
// moment shows by chance, another may show each time.
const mostAdopted = 2

// isOpen reports whether a finding is neither confirmed nor refuted, and may be tried again.
func (f *finding) isOpen() bool {
	return f.Again < confirmations && f.Replays-f.Again < confirmations && f.queued < mostReplays
}

// isRefuted reports whether a finding did not happen again when its plan was.
func (f *finding) isRefuted() bool {
	return f.Again < confirmations && f.Replays-f.Again >= confirmations
}

// isFlaky reports whether a finding of a plan may be an accident. One that was never refuted, but could only be tried again once, is
// none.
func (f *finding) isFlaky(broken, interrupted bool) bool {
	switch {
	case f.Again >= confirmations:
		return false
	case f.isRefuted(), f.refuted: // whatever other runs showed
		return true
	case len(f.Runs) > confirmations:
		return false
	case broken: // what was seen may come from there
		return true
	case f.Replays == 0:
		return !interrupted // else the user did not want to wait for it
	}
	return f.Replays > f.Again
}

func newGathering(c *campaign, began time.Time) *gathering {
	g := &gathering{campaign: c, began: began, families: map[string]*report.Family{}, findings: map[string]*finding{}, skipped: map[string]*report.NotTried{}, tried: map[string]bool{}}
	for _, name := range append([]string{"undisturbed"}, Families...) {
		g.families[name] = &report.Family{Name: name, Verdicts: map[string]int{}}
	}
	return g
}

// addUndisturbed adds observations of undisturbed runs.
func (g *gathering) addUndisturbed(wrong []*Observation) {
	family := g.families["undisturbed"]
	family.Planned = referenceRuns + len(g.campaign.checkpoints) - 1
	family.Ran = family.Planned
	steps := map[int]bool{}
	slices.SortStableFunc(wrong, func(a, b *Observation) int { // what is certain first: a restart may show it, too
		switch {
		case a.once == b.once:
			return 0
		case a.once:
			return 1
		}
		return -1
	})
	for _, o := range wrong {
		o.Family = "undisturbed"
		if len(o.Where) == 0 {
			o.Where = g.campaign.writersOf(o)
		}
		if g.campaign.ignores(o) {
			continue
		}
		f := g.observe(o, "undisturbed")
		f.Done = fmt.Sprintf("Step %q, undisturbed", g.campaign.o.Steps[o.Step].Name)
		seen := f.Replays > 0
		if f.Replays = 1; !o.once {
			f.Again = 1
		}
		if !o.once || o.isRestless() {
			family.Verdicts[o.Verdict]++
			steps[o.Step] = true
		} else if !seen {
			f.Flaky = true
			family.Flaky++
		}
	}
	family.Clean = max(0, family.Ran-len(steps)-family.Flaky)
}

// addUpgrade adds the result of an upgrade.
func (g *gathering) addUpgrade(u *upgrade) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	family := g.families[upgradeFamily]
	family.Planned, family.Ran = len(upgradeRuns), len(u.ran)
	name := u.new.o.Earlier.Name
	done := map[string]string{
		"upgrade":   "The objects are made by " + name + ". Then the CRDs and the role of the new release are applied, and its operator takes over",
		"deletion":  "The objects are made by " + name + ". The new release takes over, and then the custom resources are deleted",
		"downgrade": "The objects are made by " + name + ". The new release takes over, and then " + name + " again",
	}
	for _, part := range upgradeRuns {
		clean := slices.Contains(u.ran, part)
		for _, o := range u.found[part] {
			if g.campaign.ignores(o) {
				continue
			}
			clean = false
			family.Verdicts[o.Verdict]++
			f := g.observe(o, part)
			if !u.static[o] {
				f.Replays, f.Again = u.again(part, o)
			}
			if !f.Flaky && f.Replays-f.Again >= confirmations {
				f.Flaky = true
				family.Flaky++
			}
			if f.Done = done[part]; o.Verdict != "admission" {
				f.Story = u.stories[part] // the comparison of CRDs does not depend on the operator's actions
			}
			f.Replay = u.new.o.Earlier.command()
		}
		if clean {
			family.Clean++
		}
	}
	if u.idle {
		// An operator that only serves webhooks or converts versions writes nothing either, so this is no failure.
		g.skipped[upgradeFamily+" of children"] = &report.NotTried{
			Family: upgradeFamily, What: "objects that the operator makes",
			Reason: name + " writes nothing for the objects of the scenario: check that it watches their namespace, and reconciles their kinds",
		}
	}
	if missing := len(upgradeRuns) - len(u.ran); missing > 0 {
		g.skipped[upgradeFamily] = &report.NotTried{Family: upgradeFamily, What: "runs", Reason: "an earlier step failed", Count: missing}
	}
}

func (c *campaign) ignores(o *Observation) bool { return c.o.Ignores != nil && c.o.Ignores(o) != "" }

func (g *gathering) plan(plans []*Plan) {
	g.waiting, g.planned = plans, len(plans)
	for _, p := range plans {
		g.families[p.Family].Planned++
	}
}

// next is the plan to run next; nil if there is none, or none but confirmations are wanted and there are none.
func (g *gathering) next(late bool) *Plan {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.isBrokenLocked() {
		return nil
	}
	if len(g.again) > 0 {
		p := g.again[0]
		g.again = g.again[1:]
		return p
	}
	if late || len(g.waiting) == 0 || g.isEnoughLocked() || g.isLastLocked() {
		return nil
	}
	p := g.waiting[0]
	g.waiting = g.waiting[1:]
	g.begun++
	return p
}

// isLastLocked reports whether the limit of runs is reached.
func (g *gathering) isLastLocked() bool { return g.campaign.o.Runs > 0 && g.begun >= g.campaign.o.Runs }

// isBrokenLocked reports whether too many runs broke down to continue.
func (g *gathering) isBrokenLocked() bool { return g.broken >= mostBroken }

// isEnough reports whether the campaign can end: with FailFast, at the first finding.
func (g *gathering) isEnough() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.isEnoughLocked()
}

func (g *gathering) isEnoughLocked() bool {
	if !g.campaign.o.FailFast {
		return false
	}
	for _, f := range g.findings {
		if f.plan == nil && !f.Flaky || f.Again >= confirmations { // without a plan it shows undisturbed
			return true
		}
	}
	return false
}

// add takes the outcome of a run. A plan that was run before is a replay.
func (g *gathering) add(result *outcome) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	id := result.plan.ID()
	switch {
	case result.failed != nil:
		g.broken++
		g.broke = firstLine(result.failed.Error())
	case !g.isBrokenLocked(): // else the campaign ends, even if a run that began before does not break down
		g.broken = 0
	}
	if g.replayed(result) || g.tried[id] { // another plan may have taken its place in the meantime
		return
	}
	g.tried[id] = true
	family := g.families[result.plan.Family]
	g.ran++
	family.Ran++
	switch {
	case result.failed != nil:
		family.Failed++
		g.skip(result.plan.Family, "runs", "a run that broke down: "+g.broke)
		return
	case result.skipped != "":
		family.Failed++
		g.skip(result.plan.Family, "runs", result.skipped)
		return
	}
	wrong := slices.DeleteFunc(result.wrong, g.campaign.ignores)
	if len(wrong) == 0 {
		family.Clean++
		if result.uncompared != "" {
			g.skip(result.plan.Family, "comparisons with a fresh start", result.uncompared)
		}
		return
	}
	// The first observation is the cause; the others in the same run mostly follow from it.
	seen := map[string]bool{}
	for _, o := range wrong {
		if seen[o.Verdict] {
			continue
		}
		seen[o.Verdict] = true
		family.Verdicts[o.Verdict]++
		f := g.observe(o, id)
		if len(f.others) < mostAdopted {
			f.others = append(f.others, showing{result.plan, o, result.story})
		}
		g.adopt(f)
	}
}

// isUndecided reports whether the replays of a plan said nothing, and there are no more of them.
func (f *finding) isUndecided() bool { return f.Replays == 0 && f.queued >= mostReplays }

// adopt lets the next run that shows a finding be tried again, if there was none before, or it was refuted or could not be judged.
func (g *gathering) adopt(f *finding) {
	isUndecided := f.isUndecided() && !slices.Contains(g.again, f.plan)
	if len(f.others) == 0 || f.plan != nil && (!f.isRefuted() && !isUndecided || f.adopted >= mostAdopted) {
		return
	}
	if f.plan != nil {
		f.adopted++
	}
	f.refuted = f.refuted || f.isRefuted()
	next := f.others[0]
	f.others = f.others[1:]
	f.plan, f.Done, f.Story = next.plan, cmp.Or(next.seen.Done, next.plan.Says), next.story
	f.describe(next.seen)
	f.Replay = "opdock prove --replay " + f.ID
	f.Replays, f.Again, f.queued = 0, 0, 1
	if !slices.Contains(g.again, f.plan) { // one run tries all that it showed again
		g.again = append(g.again, f.plan)
	}
}

// describe tells what is wrong as a run has shown it.
func (f *finding) describe(o *Observation) {
	f.Title, f.Want, f.Got, f.Object, f.Fields, f.Where = o.Title, o.Want, o.Got, o.Object, o.Fields, o.Where
}

// replayed notes a run that was made to confirm findings, and reports whether it was.
func (g *gathering) replayed(result *outcome) (replay bool) {
	for _, name := range g.order {
		f := g.findings[name]
		if f.plan == nil || f.plan.ID() != result.plan.ID() {
			continue
		}
		replay = true
		if result.failed == nil && result.skipped == "" { // else it says nothing
			f.Replays++
			if slices.ContainsFunc(result.wrong, func(o *Observation) bool { return o.cause() == name }) {
				f.Again++
			}
		}
		if f.isOpen() {
			f.queued++
			if !slices.Contains(g.again, f.plan) {
				g.again = append(g.again, f.plan)
			}
		}
		g.adopt(f)
	}
	return replay
}

// observe finds or begins a finding.
func (g *gathering) observe(o *Observation, run string) *finding {
	cause := o.cause()
	f := g.findings[cause]
	if f == nil {
		sum := sha256.Sum256([]byte(cause))
		f = &finding{Finding: report.Finding{
			ID: o.Family + "-" + hex.EncodeToString(sum[:3]), Severity: o.Severity, Family: o.Family, Verdict: o.Verdict, After: time.Since(g.began),
		}}
		f.describe(o)
		g.findings[cause] = f
		g.order = append(g.order, cause)
	}
	if !slices.Contains(f.Runs, run) {
		f.Runs = append(f.Runs, run)
	}
	return f
}

// varying are parts of errors that differ from run to run: ports and the names of temporary directories.
var varying = regexp.MustCompile(`\d{4,}`)

func (g *gathering) skip(family, what, reason string) {
	key := family + "|" + what + "|" + varying.ReplaceAllString(reason, "")
	if g.skipped[key] == nil {
		g.skipped[key] = &report.NotTried{Family: family, What: what, Reason: reason}
	}
	g.skipped[key].Count++
}

// skipAll records that no family is tried.
func (g *gathering) skipAll(reason string) {
	for name := range families {
		if len(g.campaign.o.Families) == 0 || slices.Contains(g.campaign.o.Families, name) {
			g.skipped[name] = &report.NotTried{Family: name, What: "all runs", Reason: reason}
		}
	}
}

func (g *gathering) progress(result *outcome, deadline time.Time) Progress {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return Progress{Stage: "disturbing", Text: result.plan.Says, Ran: g.ran, Planned: g.planned, Found: len(g.findings), Left: max(0, time.Until(deadline))}
}
