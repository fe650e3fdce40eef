// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed page.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is the data of the template. The template holds the prose; texts that depend on the numbers come from here.
type page struct {
	*Result
	Flags, Table, Fits, Details          string
	RunNote, RaceNote, FitNote, BestNote string
	ContainersNote                       string
	QueueNote, ReadyNote, Comparison     string
	Foldable                             time.Duration
}

// Page returns the result as a documentation page.
func (r *Result) Page() ([]byte, error) {
	p := page{
		Result: r, Flags: r.flags(), Table: r.mainTable(), Fits: r.fitTable(), Details: r.details(), RunNote: r.runNote(),
		RaceNote: r.raceNote(), ContainersNote: r.containersNote(), FitNote: r.fitNote(), BestNote: r.bestNote(), Foldable: foldable, QueueNote: r.queueNote(),
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
		return fmt.Sprintf("Each change was made %d times. The numbers are medians, with the range in parentheses where the runs differ.", r.Runs)
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
	fmt.Fprintf(&text, "| **total** | | | | %d | %d | %d | %d | %d | %d |\n",
		naive.Events, naive.Reconciles, naive.Writes, app.Events, app.Reconciles, app.Writes)
	return text.String()
}

func (r *Result) fitTable() string {
	var text strings.Builder
	text.WriteString("| watched | noted numbers that are possible | and were seen here | total deviation of the medians |\n|---|---:|---:|---:|\n")
	for _, fit := range r.Fits() {
		fmt.Fprintf(&text, "| %s | %d of %d | %d of %d | %d |\n", fit.Watching.Title, fit.Within, fit.Rows, fit.Seen, fit.Rows, fit.Off)
	}
	return text.String()
}

// raceNote reports in how many rows the runs differ.
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
	return fmt.Sprintf("In %d runs here, the number of events of the naive reconciler varied in %d of %d rows.", r.Runs, differ, len(r.Rows))
}

// containersNote compares rows that differ only in the number of containers.
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
	return fmt.Sprintf("Of %d changes that were made to pods of both sizes, %d have the same median, and %d have overlapping ranges.",
		compared, same, overlap)
}

// bestNote names the best fit, if there is one.
func (r *Result) bestNote() string {
	fits := r.Fits()
	best := slices.MaxFunc(fits, func(a, b Fit) int { return cmp.Compare(a.Within, b.Within) })
	same := 0
	for _, fit := range fits {
		if fit.Within == best.Within {
			same++
		}
	}
	if same > 1 {
		return "This run does not distinguish them."
	}
	return "The best fit: " + best.Watching.Title + "."
}

// fitNote reports which of the learner's numbers are possible.
func (r *Result) fitNote() string {
	fit := r.Fits()[0]
	var text strings.Builder
	fmt.Fprintf(&text, "Of the %d numbers, %d are possible, and %d of these were seen here.", fit.Rows, fit.Within, fit.Seen)
	for i := range r.Rows {
		row := &r.Rows[i]
		if possible := row.Plain().Possible; row.Counted != nil && !possible.has(*row.Counted) {
			fmt.Fprintf(&text, " The number for %s with %s is not possible: the notes say %d, the range is %s.", row.Title, row.Size(), *row.Counted, possible)
		}
	}
	if fit.Within < fit.Rows {
		text.WriteString(" The notes do not explain this.")
	}
	return text.String()
}

// queueNote reports how often events were folded into one reconcile.
func (r *Result) queueNote() string {
	folded := 0
	for i := range r.Rows {
		if plain := r.Rows[i].Plain(); plain.Reconciles != plain.Events {
			folded++
		}
	}
	if folded == 0 {
		return "This reconciler is so fast that each event led to its own reconcile."
	}
	return fmt.Sprintf("This reconciler is fast, but in %d of %d rows at least one run had fewer reconciles than events.", folded, len(r.Rows))
}

func (r *Result) readyNote() string {
	if r.ReadyAfter == 0 {
		return "Here they become ready as soon as they run."
	}
	return fmt.Sprintf("Here they become ready about %s after they start (`--ready-after`).", r.ReadyAfter)
}

func (r *Result) comparison() string {
	naive, app := r.Sums()
	return fmt.Sprintf(`In total, the naive reconciler gets %d events, reconciles %d times and writes %d times. The AppService controller gets
%d events, because it watches more. It reconciles %d times and writes %d times, including its own status and
its Deployment.`,
		naive.Events, naive.Reconciles, naive.Writes, app.Events, app.Reconciles, app.Writes)
}
