// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/opdock/opdock/internal/rights"
)

// show prints a report for people.
type show struct {
	out     io.Writer
	now     time.Time
	explain bool
}

var sections = []struct {
	kind  rights.FindingType
	title string
}{
	{rights.Missing, "Missing: needed, but not granted"},
	{rights.Refused, "Refused: requested, but neither granted nor shown to be needed"},
	{rights.Unused, "Unused in these recordings"},
	{rights.Broader, "Broader than needed"},
	{rights.Kept, "Kept: not seen in these recordings, but part of a manager"},
}

func (s *show) report(name string, r *rights.Report) {
	var requests uint64
	for _, recording := range r.Recordings {
		requests += recording.Requests
	}
	as := ""
	if r.Identity != "" {
		as = " as " + r.Identity
	}
	fmt.Fprintf(s.out, "%s: %s%s in %s\n", name, number(requests, "request"), as, number(uint64(len(r.Recordings)), "recording"))
	if r.Granted == "" {
		fmt.Fprintln(s.out, "Granted: not compared")
	} else {
		fmt.Fprintf(s.out, "Granted: %s\n", r.Granted)
	}
	for _, section := range sections {
		s.section(section.kind, section.title, r.Findings)
	}
	s.needs(r)
	if len(r.Notes) > 0 {
		fmt.Fprintln(s.out)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(s.out, "! %s\n", note)
	}
	fmt.Fprintf(s.out, "\n%s\n", conclusion(r))
}

func conclusion(r *rights.Report) string {
	if r.Granted == "" {
		return number(uint64(r.Rights()), "right") + " needed"
	}
	missing, unneeded := r.Count(rights.Missing, rights.Refused), r.Count(rights.Unused, rights.Broader)
	if missing+unneeded == 0 {
		return "The granted rights are exactly the needed rights."
	}
	return fmt.Sprintf("%d missing or refused, %d unused or broader than needed", missing, unneeded)
}

func (s *show) section(kind rights.FindingType, title string, findings []rights.Finding) {
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	first := true
	for i := range findings {
		finding := &findings[i]
		if finding.Type != kind {
			continue
		}
		if first {
			fmt.Fprintf(s.out, "\n%s\n", title)
			first = false
		}
		what := (rights.Right{Group: finding.Group, Resource: finding.Resource, URL: finding.URL}).Object()
		if len(finding.Names) > 0 {
			what += " " + strings.Join(finding.Names, ",")
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", strings.Join(finding.Verbs, ","), what, s.details(finding))
	}
	table.Flush()
}

// details says what a finding is based on.
func (s *show) details(f *rights.Finding) string {
	var parts []string
	if f.Message != "" {
		parts = append(parts, f.Message)
	}
	if f.Evidence != nil {
		parts = append(parts, s.evidence(f.Evidence))
	}
	if f.From != "" {
		from := f.From
		if f.Namespace != "" {
			from += " in " + f.Namespace
		}
		if len(f.Markers) > 0 {
			from += " (" + strings.Join(f.Markers, ", ") + ")"
		}
		parts = append(parts, "granted by "+from)
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}

// evidence says how often a right was used, when, where and by what.
func (s *show) evidence(e *rights.Evidence) string {
	if e.Requests == 0 {
		return ""
	}
	text := number(e.Requests, "request")
	switch {
	case e.Refused == e.Requests && e.Requests == 1:
		text += ", refused"
	case e.Refused == e.Requests:
		text += ", all refused"
	case e.Refused > 0:
		text += fmt.Sprintf(", %d refused", e.Refused)
	}
	if !e.Last.IsZero() {
		text += ", last " + ago(s.now.Sub(e.Last))
	}
	if e.Reconcile != nil {
		text += " in " + e.Reconcile.String()
	}
	return text
}

// row is a line of the table of needs: verbs on one resource at the same places.
type row struct {
	what, where string
	verbs       []string
	requests    uint64
	last        time.Time
}

func (s *show) needs(r *rights.Report) {
	fmt.Fprintf(s.out, "\nNeeded\n")
	table := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	defer table.Flush()
	if s.explain {
		for _, n := range r.Needs {
			why := slices.Clone(n.Why)
			if evidence := s.evidence(&n.Evidence); evidence != "" {
				if n.Evidence.Recording != "" {
					evidence = fmt.Sprintf("%s, request #%d of %s", evidence, n.Evidence.Request, n.Evidence.Recording)
				}
				why = append(why, evidence)
			}
			if !n.Proposed {
				why = append(why, "not proposed")
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", n.Verb, n.Object(), where(n), strings.Join(why, "; "))
		}
		return
	}
	var rows []*row
	for _, n := range r.Needs {
		if !n.Proposed {
			continue
		}
		what, at := n.Object(), where(n)
		i := slices.IndexFunc(rows, func(one *row) bool { return one.what == what && one.where == at })
		if i < 0 {
			rows = append(rows, &row{what: what, where: at})
			i = len(rows) - 1
		}
		rows[i].verbs = append(rows[i].verbs, n.Verb)
		if !n.Implied {
			rows[i].requests += n.Evidence.Requests
		}
		if n.Evidence.Last.After(rows[i].last) {
			rows[i].last = n.Evidence.Last
		}
	}
	for _, one := range rows {
		evidence := "implied by other rights: see --explain"
		if one.requests > 0 {
			evidence = fmt.Sprintf("%s, last %s", number(one.requests, "request"), ago(s.now.Sub(one.last)))
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", strings.Join(one.verbs, ","), one.what, one.where, evidence)
	}
}

// where is the place at which a right is proposed.
func where(n *rights.Need) string {
	text := "cluster"
	if len(n.Namespaces) > 0 {
		text = "namespace " + strings.Join(n.Namespaces, ",")
	}
	if len(n.Names) > 0 {
		text += ", only " + strings.Join(n.Names, ",")
	}
	return text
}

func number(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func ago(d time.Duration) string {
	d = max(d, 0)
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= unit.size {
			return fmt.Sprintf("%d%s ago", d/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%ds ago", d/time.Second)
}

// files are the names of files that edits are about.
func files(edits []rights.Edit) []string {
	names := map[string]bool{}
	for _, edit := range edits {
		names[edit.File] = true
	}
	return slices.Sorted(maps.Keys(names))
}
