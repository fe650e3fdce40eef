// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// details lists the events of each change. Rows that differ only in the number of containers are grouped, and lists
// that are the same for all of them appear once.
func (r *Result) details() string {
	var order []string
	rows := map[string][]*Row{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if rows[row.Change] == nil {
			order = append(order, row.Change)
		}
		rows[row.Change] = append(rows[row.Change], row)
	}
	var text strings.Builder
	for _, change := range order {
		detail(&text, rows[change])
	}
	return text.String()
}

func detail(text *strings.Builder, rows []*Row) {
	fmt.Fprintf(text, "### %s\n\n", upperFirst(rows[0].Title))
	for _, row := range rows {
		fmt.Fprintf(text, "- with %s: %s\n", row.Size(), row.Verdict())
	}
	for i, row := range rows {
		trace := &row.Plain().Trace
		if i > 0 && slices.Equal(meanings(trace), meanings(&rows[0].Plain().Trace)) {
			fmt.Fprintf(text, "\nNaive, %s: the same.\n", row.Size())
			continue
		}
		fmt.Fprintf(text, "\nNaive, %s:\n\n", row.Size())
		naiveList(text, trace)
	}
	for i, row := range rows {
		app := &row.AppService
		if i > 0 && slices.Equal(meanings(&app.Trace), meanings(&rows[0].AppService.Trace)) {
			fmt.Fprintf(text, "\nAppService, %s: the same%s\n", row.Size(), ignoredOf(app))
			continue
		}
		fmt.Fprintf(text, "\nAppService, %s:\n\n", row.Size())
		appServiceList(text, app)
	}
	text.WriteString("\n")
}

func naiveList(text *strings.Builder, trace *Trace) {
	if len(trace.Reconciles) == 0 {
		text.WriteString("- nothing\n")
	}
	for i := range trace.Reconciles {
		causes := trace.CausesOf(i)
		for j := range causes {
			bullet := fmt.Sprintf("%d. ", i+1)
			if j > 0 {
				bullet = "   and "
			}
			fmt.Fprintf(text, "%s%s\n", bullet, markdownEvent(&causes[j]))
		}
	}
}

func appServiceList(text *strings.Builder, app *Measured) {
	for i := range app.Trace.Reconciles {
		causes := app.Trace.CausesOf(i)
		for j := range causes {
			bullet := fmt.Sprintf("%d. ", i+1)
			if j > 0 {
				bullet = "   and "
			}
			fmt.Fprintf(text, "%s%s\n", bullet, markdownEvent(&causes[j]))
		}
		fmt.Fprintf(text, "   → %s\n", app.Trace.Reconciles[i].WritesOf())
	}
	if len(app.Trace.Reconciles) == 0 {
		text.WriteString("- no reconcile\n")
	}
	if ignored := app.Ignored(); ignored != "" {
		fmt.Fprintf(text, "\nNo separate reconcile for these events: %s.\n", ignored)
	}
}

func ignoredOf(app *Measured) string {
	if ignored := app.Ignored(); ignored != "" {
		return "; no separate reconcile for these events: " + ignored + "."
	}
	return "."
}

func markdownEvent(e *Event) string {
	text := fmt.Sprintf("%s: **%s**", e.Subject(), e.Meaning())
	if writers := e.Writers(); writers != "" {
		text += " (" + writers + ")"
	}
	if fields := e.Fields(); fields != "" {
		text += ": `" + fields + "`"
	}
	return text
}

// meanings returns what distinguishes traces for a reader. It ignores the names of pods, for example.
func meanings(trace *Trace) (all []string) {
	for i := range trace.Events {
		e := &trace.Events[i]
		kind := ""
		if e.Object != nil {
			kind = e.Object.Kind
		}
		all = append(all, fmt.Sprintf("%d %s %s", e.Reconcile, kind, e.Meaning()))
	}
	return all
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
