// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
	"time"
)

//go:embed page.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template needs. The prose is there, and what depends on the numbers comes from here.
type page struct {
	*Result
	Flags, Table, Fits, Details                string
	RunNote, RaceNote, FitNote, ContainersNote string
	QueueNote, ReadyNote, Comparison           string
	Foldable                                   time.Duration
}

// Page returns the result as a page of the documentation.
func (r *Result) Page() ([]byte, error) {
	p := page{
		Result: r, Flags: r.flags(), Table: r.mainTable(), Fits: r.fitTable(), Details: r.details(), RunNote: r.runNote(),
		RaceNote: r.raceNote(), ContainersNote: r.containersNote(), FitNote: r.fitNote(), Foldable: foldable, QueueNote: r.queueNote(),
		ReadyNote: r.readyNote(), Comparison: r.comparison(),
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return nil, fmt.Errorf("writing the page: %w", err)
	}
	return out.Bytes(), nil
}

func (r *Result) flags() string {
	if r.Runs == 1 {
		return ""
	}
	return fmt.Sprintf(" --runs %d", r.Runs)
}

func (r *Result) runNote() string {
	switch {
	case r.Runs == 1:
		return "Each change was made once."
	case r.Differs():
		return fmt.Sprintf("Each change was made %d times; the numbers are medians, with the least and the most where the runs differed.", r.Runs)
	default:
		return fmt.Sprintf("Each change was made %d times, with the same numbers every time.", r.Runs)
	}
}

func (r *Result) mainTable() string {
	var text strings.Builder
	text.WriteString("| | | counted | naive | | | | AppService | | |\n")
	text.WriteString("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	text.WriteString("| **change** | **containers** | **then** | **possible** | **events** | **reconciles** | **writes** | **events** | **reconciles** | **writes** |\n")
	for i := range r.Rows {
		row := &r.Rows[i]
		plain, app := row.Plain(), &row.AppService
		seen := plain.Events.String()
		if plain.Then != plain.Events {
			seen += fmt.Sprintf(" [%s]", plain.Then)
		}
		fmt.Fprintf(&text, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", row.Title, row.Containers, row.CountedText(),
			plain.Possible, seen, plain.Reconciles, plain.Writes, app.Events, app.Reconciles, app.Writes)
	}
	naive, app := r.Sums()
	fmt.Fprintf(&text, "| **together** | | | | %d | %d | %d | %d | %d | %d |\n",
		naive.Events, naive.Reconciles, naive.Writes, app.Events, app.Reconciles, app.Writes)
	return text.String()
}

func (r *Result) fitTable() string {
	var text strings.Builder
	text.WriteString("| watched | of the numbers that were noted, are possible | the medians here are off by, all together |\n|---|---:|---:|\n")
	name := ""
	for _, fit := range r.Fits() {
		name = strings.TrimSpace(name + " " + fit.Watching.Title)
		fmt.Fprintf(&text, "| %s | %d of %d | %d |\n", name, fit.Within, fit.Rows, fit.Off)
	}
	return text.String()
}

// raceNote says in how many rows the runs did not agree.
func (r *Result) raceNote() string {
	if r.Runs == 1 {
		return "Run it a few times (`--runs 5`) to see it."
	}
	differ := 0
	for i := range r.Rows {
		if e := r.Rows[i].Plain().Events; e.Least != e.Most {
			differ++
		}
	}
	return fmt.Sprintf("In %d runs here, the naive reconciler got another number of events for the same change in %d of %d rows.", r.Runs, differ, len(r.Rows))
}

// containersNote compares the rows that differ in nothing but the containers.
func (r *Result) containersNote() string {
	byChange := map[string][]Spread{}
	for i := range r.Rows {
		byChange[r.Rows[i].Change] = append(byChange[r.Rows[i].Change], r.Rows[i].Plain().Events)
	}
	compared, same, overlap := 0, 0, 0
	for _, spreads := range byChange {
		for _, other := range spreads[1:] {
			compared++
			if spreads[0].Median == other.Median {
				same++
			}
			if spreads[0].Least <= other.Most && other.Least <= spreads[0].Most {
				overlap++
			}
		}
	}
	if compared == 0 {
		return "This run has pods of one size only."
	}
	return fmt.Sprintf("Of %d changes that were made here to pods of two sizes, %d have the same median, and for %d the numbers of both sizes overlap.",
		compared, same, overlap)
}

// fitNote says which of the learner's numbers are possible.
func (r *Result) fitNote() string {
	fit := r.Fits()[0]
	var text strings.Builder
	fmt.Fprintf(&text, "Of the %d numbers, %d are possible.", fit.Rows, fit.Within)
	for i := range r.Rows {
		row := &r.Rows[i]
		if possible := row.Plain().Possible; row.Counted != nil && !possible.has(*row.Counted) {
			fmt.Fprintf(&text, " Not so %s with %s: %d were noted, where %s would be possible.", row.Title, row.Size(), *row.Counted, possible)
		}
	}
	if fit.Within < fit.Rows {
		text.WriteString(" What the learner saw there cannot be told from the notes.")
	}
	return text.String()
}

func (r *Result) queueNote() string {
	naive, _ := r.Sums()
	if naive.Events == naive.Reconciles {
		return fmt.Sprintf("This one has so little to do that all its %d events were one reconcile each.", naive.Events)
	}
	return fmt.Sprintf("Here, %d events were %d reconciles.", naive.Events, naive.Reconciles)
}

func (r *Result) readyNote() string {
	if r.ReadyAfter == 0 {
		return "Here they are ready as soon as they run."
	}
	return fmt.Sprintf("Here they are ready about %s after they have started (`--ready-after`).", r.ReadyAfter)
}

func (r *Result) comparison() string {
	naive, app := r.Sums()
	return fmt.Sprintf("For the %d rows above, %d events led the naive reconciler to %d reconciles and as many writes (%d). The AppService is shown %d events, because it "+
		"watches more, and is called %d times.", len(r.Rows), naive.Events, naive.Reconciles, naive.Writes, app.Events, app.Reconciles)
}
