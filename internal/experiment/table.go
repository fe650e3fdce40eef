// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText writes the result for a terminal: a table, followed by the events.
func (r *Result) WriteText(w io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(cells ...any) {
		for i, cell := range cells {
			if i == 0 {
				// Only this column is aligned to the left.
				fmt.Fprintf(table, "%-*s\t", r.titleWidth(), cell)
				continue
			}
			fmt.Fprintf(table, "%v\t", cell)
		}
		fmt.Fprintln(table)
	}
	line("", "", "", "", "naive", "", "", "AppService")
	line("change", "containers", "counted", "possible", "events", "reconciles", "writes", "events", "reconciles", "writes")
	for i := range r.Rows {
		row := &r.Rows[i]
		plain, app := row.Plain(), &row.AppService
		line(row.Title, row.Containers, row.CountedText(), plain.Possible, plain.Events, plain.Reconciles, plain.Writes, app.Events, app.Reconciles, app.Writes)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for i := range r.Rows {
		explainRow(&text, &r.Rows[i])
	}
	text.WriteString("\n" + r.notes() + "\n")
	_, err := io.WriteString(w, text.String())
	return err
}

func (r *Result) titleWidth() (width int) {
	for i := range r.Rows {
		width = max(width, len([]rune(r.Rows[i].Title)))
	}
	return width
}

// notes explain the numbers.
func (r *Result) notes() string {
	text := "Counted is the number that a kubebuilder beginner noted. The naive reconciler watches Deployments without a predicate.\n" +
		"Possible is the range of events at that time: events can be folded, and pods can be counted one by one."
	if r.Runs > 1 {
		text += fmt.Sprintf("\nEach change was made %d times. The numbers are medians", r.Runs)
		if r.Differs() {
			text += ", with the range in parentheses where the runs differ"
		}
		text += "."
	}
	return text
}

func explainRow(text *strings.Builder, row *Row) {
	fmt.Fprintf(text, "\n%s, %s: %s\n", row.Title, row.Size(), row.Verdict())
	trace := &row.Plain().Trace
	for i := range trace.Events {
		e := &trace.Events[i]
		fmt.Fprintf(text, "  reconcile %d  %s\n", e.Reconcile+1, explainEvent(e))
	}
	app := &row.AppService
	fmt.Fprintf(text, "  AppService: %s, %s\n", events(app.Events), reconciles(len(app.Trace.Reconciles)))
	for i := range app.Trace.Reconciles {
		for _, e := range app.Trace.CausesOf(i) {
			fmt.Fprintf(text, "  reconcile %d  %s\n", i+1, explainEvent(&e))
		}
		fmt.Fprintf(text, "               wrote: %s\n", app.Trace.Reconciles[i].WritesOf())
	}
	if ignored := app.Ignored(); ignored != "" {
		fmt.Fprintf(text, "  no separate reconcile: %s\n", ignored)
	}
}

func explainEvent(e *Event) string {
	text := e.Subject() + ": " + e.Meaning()
	if writers := e.Writers(); writers != "" {
		text += " (" + writers + ")"
	}
	if fields := e.Fields(); fields != "" {
		text += ": " + fields
	}
	return text
}

func reconciles(n int) string {
	if n == 1 {
		return "1 reconcile"
	}
	return fmt.Sprintf("%d reconciles", n)
}
