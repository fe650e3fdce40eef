// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"maps"
	"slices"
)

// Sort brings families into the order of their table, and findings into the order in which to read them: what happens
// without any fault first, because it casts doubt on everything after it; then the worst; flaky ones last.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Families, func(a, b Family) int {
		return cmp.Or(cmp.Compare(rank(families, a.Name), rank(families, b.Name)), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(
			first(b.Flaky, a.Flaky),
			first(a.Family == "undisturbed", b.Family == "undisturbed"),
			cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)),
			cmp.Compare(rank(verdicts, a.Verdict), rank(verdicts, b.Verdict)),
			cmp.Compare(len(b.Runs), len(a.Runs)),
			cmp.Compare(rank(families, a.Family), rank(families, b.Family)),
			cmp.Compare(a.ID, b.ID),
		)
	})
	slices.SortStableFunc(r.NotTried, func(a, b NotTried) int {
		return cmp.Compare(rank(families, a.Family), rank(families, b.Family))
	})
}

// first orders what is true before what is false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// Exit codes of the command.
const (
	exitFindings = 1
	exitNotTried = 2
)

// ExitCode returns the exit code of the command: 1 if there are findings, 2 if there are none because no disturbed run was
// judged, the last ones broke down or the campaign was interrupted, else 0. Flaky findings do not count.
func (r *Report) ExitCode() int {
	switch t := r.Totals(); {
	case t.Findings > 0:
		return exitFindings
	case t.Judged() <= 0 || r.Broken != "" || r.Interrupted:
		return exitNotTried
	}
	return 0
}

// Totals are sums over a report.
type Totals struct {
	Planned, Ran, Clean, Failed int
	FlakyRuns                   int
	Undisturbed                 int            // runs without a disturbance that came to a verdict
	Findings, Flaky             int            // findings, and flaky findings, which are not among the former
	Severities                  map[string]int // findings by severity, without flaky ones
}

// Judged returns how many disturbed runs came to a verdict. Runs without a disturbance prove nothing: the others are compared
// with them.
func (t Totals) Judged() int { return t.Ran - t.Failed - t.Undisturbed }

// Totals returns the sums over all families and findings.
func (r *Report) Totals() Totals {
	t := Totals{Severities: map[string]int{}}
	for _, family := range r.Families {
		t.Planned += family.Planned
		t.Ran += family.Ran
		t.Clean += family.Clean
		t.Failed += family.Failed
		t.FlakyRuns += family.Flaky
		if family.Name == "undisturbed" {
			t.Undisturbed = family.Ran - family.Failed
		}
	}
	for _, finding := range r.Findings {
		if finding.Flaky {
			t.Flaky++
			continue
		}
		t.Findings++
		t.Severities[finding.Severity]++
	}
	return t
}

// sorted returns a sorted copy: writing a report does not change it.
func (r *Report) sorted() *Report {
	s := *r
	s.Families = slices.Clone(r.Families)
	s.Findings = slices.Clone(r.Findings)
	s.NotTried = slices.Clone(r.NotTried)
	s.Sort()
	return &s
}

// split returns the findings that count and the flaky ones.
func (r *Report) split() (sure, flaky []Finding) {
	for _, finding := range r.Findings {
		if finding.Flaky {
			flaky = append(flaky, finding)
		} else {
			sure = append(sure, finding)
		}
	}
	return sure, flaky
}

// columns returns the verdicts that any run has, the worst first.
func (r *Report) columns() []string {
	seen := map[string]bool{}
	for _, family := range r.Families {
		for verdict, runs := range family.Verdicts {
			if runs > 0 {
				seen[verdict] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(verdicts, a), rank(verdicts, b)), cmp.Compare(a, b))
	})
}

// allFamilies returns the families, and those that only findings or the list of what was not tried name.
func (r *Report) allFamilies() []Family {
	all := slices.Clone(r.Families)
	add := func(name string) {
		if !slices.ContainsFunc(all, func(f Family) bool { return f.Name == name }) {
			all = append(all, Family{Name: name})
		}
	}
	for _, finding := range r.Findings {
		add(finding.Family)
	}
	for _, one := range r.NotTried {
		add(one.Family)
	}
	return all
}
