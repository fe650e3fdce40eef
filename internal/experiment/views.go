// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Plain returns the naive controller that the learner's numbers fit.
func (r *Row) Plain() *Measured { return &r.Naive[0] }

// Size returns the number of containers per pod, in words.
func (r *Row) Size() string { return containerCount(r.Containers) }

func containerCount(n int) string {
	if n == 1 {
		return "1 container"
	}
	return fmt.Sprintf("%d containers", n)
}

// CountedText returns the number that the learner noted, as text.
func (r *Row) CountedText() string {
	if r.Counted == nil {
		return "–"
	}
	return strconv.Itoa(*r.Counted)
}

// Verdict compares the numbers of this run with the number that the learner noted.
func (r *Row) Verdict() string {
	plain := r.Plain()
	text := events(plain.Events) + " here"
	if plain.Then != plain.Events {
		text += fmt.Sprintf(", %s without events that only report stopping pods", plain.Then)
	}
	text += fmt.Sprintf("; possible: %s", plain.Possible)
	switch {
	case r.Counted == nil:
		return text + "; the learner noted no number"
	case plain.Possible.has(*r.Counted):
		return fmt.Sprintf("%s; the learner noted %d", text, *r.Counted)
	case *r.Counted > plain.Possible.Most:
		return fmt.Sprintf("%s; the learner noted %d, more than these records explain", text, *r.Counted)
	default:
		return fmt.Sprintf("%s; the learner noted %d, fewer than these records explain", text, *r.Counted)
	}
}

func events(s Spread) string {
	if s == (Spread{1, 1, 1}) {
		return "1 event"
	}
	return s.String() + " events"
}

// Ignored summarises the events that led to no reconcile.
func (m *Measured) Ignored() string {
	counts, order := map[string]int{}, []string{}
	for i := range m.Seen {
		e := &m.Seen[i]
		if slices.ContainsFunc(m.Trace.Events, func(led Event) bool { return led.same(e) }) {
			continue
		}
		what := "its " + e.Object.Kind
		switch {
		case strings.Contains(e.Writers(), "opdock-"+m.Controller):
			what = "its own writes"
		case e.Object.Kind == "Pod":
			what = "pods"
		}
		if counts[what]++; counts[what] == 1 {
			order = append(order, what)
		}
	}
	var parts []string
	for _, what := range order {
		parts = append(parts, fmt.Sprintf("%d about %s", counts[what], what))
	}
	return strings.Join(parts, ", ")
}

// CausesOf returns the events that led to a reconcile.
func (t *Trace) CausesOf(reconcile int) (causes []Event) {
	for _, e := range t.Events {
		if e.Reconcile == reconcile {
			causes = append(causes, e)
		}
	}
	return causes
}

func (s Spread) has(value int) bool { return s.Least <= value && value <= s.Most }

// Fit describes how well the numbers of a naive controller fit the learner's notes.
type Fit struct {
	Watching Watching
	// Rows is how many numbers the learner noted, Within how many of them are possible, and Seen how many of those
	// occurred here. Off is the sum of the differences between the medians and the notes.
	Rows, Within, Seen, Off int
}

// Fits compares all naive controllers with the notes.
func (r *Result) Fits() []Fit {
	fits := make([]Fit, len(Watchings))
	for i, watching := range Watchings {
		fits[i].Watching = watching
		for _, row := range r.Rows {
			if row.Counted == nil {
				continue
			}
			m := &row.Naive[i]
			fits[i].Rows++
			if m.Possible.has(*row.Counted) {
				fits[i].Within++
				if m.Then.has(*row.Counted) {
					fits[i].Seen++
				}
			}
			fits[i].Off += max(m.Then.Median-*row.Counted, *row.Counted-m.Then.Median)
		}
	}
	return fits
}

// Totals holds sums of medians over all rows.
type Totals struct{ Events, Reconciles, Writes int }

func (t *Totals) add(m *Measured) {
	t.Events += m.Events.Median
	t.Reconciles += m.Reconciles.Median
	t.Writes += m.Writes.Median
}

// Sums returns the totals of the naive controller that the numbers fit, and of the AppService.
func (r *Result) Sums() (naive, appService Totals) {
	for i := range r.Rows {
		naive.add(r.Rows[i].Plain())
		appService.add(&r.Rows[i].AppService)
	}
	return naive, appService
}

// Differs reports whether any number differs between runs.
func (r *Result) Differs() bool {
	differs := func(m *Measured) bool {
		return m.Events.Least != m.Events.Most || m.Reconciles.Least != m.Reconciles.Most || m.Writes.Least != m.Writes.Most
	}
	return slices.ContainsFunc(r.Rows, func(row Row) bool { return differs(row.Plain()) || differs(&row.AppService) })
}
