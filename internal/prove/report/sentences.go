// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// These sentences are the same in the terminal and on the page.

// undisturbed says what the operator does without faults.
func (r *Report) undisturbed() string {
	ref := r.Reference
	if ref.Runs == 0 && len(r.Families) == 1 && r.Families[0].Name == "upgrade" {
		return "An upgrade is compared with what the earlier release made: the scenario was not run undisturbed."
	}
	if ref.Runs == 0 {
		return "No undisturbed run was completed, so there is nothing to compare disturbed runs with."
	}
	text := fmt.Sprintf("Undisturbed: %s, %s, %s.", plural(ref.Runs, "run"), plural(ref.Writes, "write"), plural(ref.Objects, "object"))
	switch {
	case ref.Masked == 1:
		text += " 1 field differs between these runs and is not compared."
	case ref.Masked > 1:
		text += fmt.Sprintf(" %d fields differ between these runs and are not compared.", ref.Masked)
	}
	if ref.Marked {
		text += " Reconciles are marked by an instrumented build."
	}
	if len(ref.Failing) > 0 {
		text += " Even so, the operator keeps failing: " + strings.Join(ref.Failing, "; ") + ". What a run leaves undone while it fails like that is not judged."
	}
	if len(ref.Unfinished) > 0 {
		text += " Even so, not everything gets ready: " + strings.Join(ref.Unfinished, "; ") + ". What the operator does after that is not tried."
	}
	if ref.Writes == 0 {
		text += " The operator writes nothing, so there is little to disturb: check that it watches the namespace of these objects, and reconciles their kinds."
	}
	if ref.Kept > 0 {
		text += fmt.Sprintf(" After the deletion, Kubernetes keeps %s of StatefulSets by design, and their volumes.", plural(ref.Kept, "claim"))
	}
	return text
}

// duration says how long the campaign took, and which budget it had.
func (r *Report) duration() string {
	text := took(r.Took)
	if r.Budget > 0 {
		text += " of " + took(r.Budget)
	}
	return text
}

// outcome is the result in a few words.
func (r *Report) outcome() string {
	t := r.Totals()
	switch {
	case t.Findings > 0:
		return plural(t.Findings, "finding") + r.bySeverity()
	case t.Judged() <= 0:
		return "No disturbed run was judged"
	case r.cutShort() != "":
		return "No findings so far"
	default:
		return "No findings"
	}
}

func (r *Report) bySeverity() string {
	t := r.Totals()
	var parts []string
	for _, severity := range severities {
		if n := t.Severities[severity]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, severity))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// summary is the last line.
func (r *Report) summary() string {
	t := r.Totals()
	parts := []string{r.outcome()}
	if t.Flaky > 0 {
		parts = append(parts, fmt.Sprintf("%d flaky", t.Flaky))
	}
	runs := plural(t.Ran, "run")
	if t.Ran < t.Planned {
		runs = fmt.Sprintf("%d of %s", t.Ran, plural(t.Planned, "planned run"))
	}
	parts = append(parts, fmt.Sprintf("%s in %s", runs, took(r.Took)))
	if t.Ran > 0 {
		parts = append(parts, fmt.Sprintf("%d clean", t.Clean))
	}
	if t.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d not judged", t.Failed))
	}
	text := strings.Join(parts, ", ") + "."
	switch {
	case r.Interrupted:
		text = "Interrupted. " + text
	case r.Broken != "":
		text = "Ended early. " + text
	}
	return text
}

// cutShort explains what a campaign is worth that did not come to its end; empty if it did.
func (r *Report) cutShort() string {
	t := r.Totals()
	covers := fmt.Sprintf(" after %d of %s. The report covers these runs only.", t.Ran, plural(t.Planned, "planned run"))
	switch {
	case r.Broken != "":
		return "Ended early" + covers + " The last runs broke down: " + visible(r.Broken)
	case !r.Interrupted:
		return ""
	case t.Ran == 0:
		return "Interrupted before the first run ended."
	}
	return "Interrupted" + covers
}

// evidence says how often a finding was seen.
func (f *Finding) evidence() string {
	text := plural(len(f.Runs), "run")
	if f.Replays > 0 {
		text += fmt.Sprintf(", happened again in %d of %s", f.Again, plural(f.Replays, "replay"))
	}
	return text
}

// noEffectNote explains properties without an effect.
const noEffectNote = "Other valid values of these properties changed neither a status nor an object that the operator wrote:"

// flakyNote explains flaky findings.
const flakyNote = "These did not happen again in two of three replays. They do not change the exit code."

// subject is what was not tried, and how many runs of it, if that is known and the text does not already say it.
func (n *NotTried) subject() (what, count string) {
	switch {
	case n.Count <= 0:
		return visible(n.What), ""
	case n.What == "runs":
		return plural(n.Count, "run"), ""
	default:
		return visible(n.What), plural(n.Count, "run")
	}
}
