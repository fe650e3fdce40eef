// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package whycmd

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/why"
)

const (
	bold   = "\x1b[1m"
	faint  = "\x1b[2m"
	yellow = "\x1b[33m"
)

// whyShow prints records for people: a block for each.
type whyShow struct {
	out      io.Writer
	colour   bool
	location *time.Location
}

func (s *whyShow) paint(colour, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return colour + text + cmdutil.NoColour
}

func (s *whyShow) record(r *why.Record) {
	var text strings.Builder
	object := objectName(&r.Object)
	number := fmt.Sprintf("#%d", r.ID)
	switch {
	case r.Object.Kind == "":
		object = printable(r.Controller) + " " + object
	case r.Controller != strings.ToLower(r.Object.Kind):
		// It has a name of its own, so there may be others that reconcile the same object.
		number += " by " + printable(r.Controller)
	}
	fmt.Fprintf(&text, "%s  %s  %s\n", s.paint(faint, r.Start.In(s.location).Format(clock)), s.paint(bold, object), s.paint(faint, number))
	for i := range r.Causes {
		s.cause(&text, r, &r.Causes[i])
	}
	if more := r.Folded - len(r.Causes); more > 0 {
		fmt.Fprintf(&text, "  • and %s more\n", many(more, "event"))
	}
	for i := range r.Writes {
		s.write(&text, &r.Writes[i])
	}
	if more := r.Written - len(r.Writes); more > 0 {
		fmt.Fprintf(&text, "  → and %s more\n", many(more, "write"))
	}
	s.outcome(&text, r)
	for _, f := range r.Findings {
		colour := yellow
		switch {
		case f.Type == why.Loop:
			colour = cmdutil.Red
		case f.Type == why.NoOp && !slices.ContainsFunc(r.Causes, func(c why.Cause) bool { return c.Type != why.Listed }):
			colour = faint // that is how a restart should be
		}
		fmt.Fprintf(&text, "  %s\n", s.paint(colour, printable(fmt.Sprintf("! %s: %s", f.Type, f.Message))))
	}
	fmt.Fprintln(s.out, text.String())
}

func (s *whyShow) cause(text *strings.Builder, r *why.Record, c *why.Cause) {
	what := map[why.CauseType]string{
		why.Listed: "already existed when the watch started:", why.Retried: "requeued, or retried after an error", why.Timer: "requeue timer expired",
		why.Generic: "event from another source", why.Unknown: "unknown cause: no watch event came before it (a resync, a timer or another source can lead to it)",
	}[c.Type]
	if what == "" {
		what = printable(string(c.Type))
	}
	if c.Object != nil {
		what += " " + objectName(c.Object)
	}
	fmt.Fprintf(text, "  • %s", what)
	by := writerNames(c.By)
	if c.HasUnknownWriter() {
		by = "an unknown writer"
	}
	if by != "" {
		fmt.Fprintf(text, " %s", s.paint(faint, "by "+by))
	}
	if c.Write != nil {
		fmt.Fprintf(text, " %s", s.paint(yellow, fmt.Sprintf("(written by #%d)", c.Write.Record)))
	}
	if c.Repeated {
		fmt.Fprintf(text, " %s", s.paint(yellow, "(already seen by the previous reconcile)"))
	}
	// What was waited leaves out the time for which a handler has held an event back, which would be a riddle.
	if before := r.Start.Sub(c.Seen); c.Object != nil && !c.Seen.IsZero() && before-r.Waited >= time.Second {
		fmt.Fprintf(text, " %s", s.paint(faint, "(seen "+waitedFor(before)+" earlier)"))
	}
	text.WriteByte('\n')
	for _, change := range c.Changes {
		fmt.Fprintf(text, "      %s  %s → %s\n", printable(change.Path), s.paint(cmdutil.Red, printable(cmdutil.OrDash(change.Old))), s.paint(cmdutil.Green, printable(cmdutil.OrDash(change.New))))
	}
	if more := c.Changed - len(c.Changes); more > 0 {
		fmt.Fprintf(text, "      and %s more\n", many(more, "field"))
	}
}

func (s *whyShow) write(text *strings.Builder, w *why.Write) {
	what := printable(w.Verb) + " " + objectName(&w.Object)
	if w.Subresource != "" {
		what += ", " + printable(w.Subresource)
	}
	notes := []string{waitedFor(w.Duration)}
	if w.NoChange {
		notes = append(notes, "no change")
	}
	fmt.Fprintf(text, "  → %s %s", what, s.paint(faint, cmdutil.InParentheses(notes...)[1:]))
	if w.Error != "" {
		fmt.Fprintf(text, " %s", s.paint(cmdutil.Red, "✗ "+printable(w.Error)))
	}
	text.WriteByte('\n')
}

func (s *whyShow) outcome(text *strings.Builder, r *why.Record) {
	mark, what := s.paint(cmdutil.Green, "✓"), printable(string(r.Outcome))
	switch r.Outcome {
	case why.Failed, why.Terminal, why.Panicked:
		mark = s.paint(cmdutil.Red, "✗")
		if r.Error != "" {
			what += ": " + printable(r.Error)
		}
		if r.Outcome == why.Terminal {
			what += " (not retried)"
		}
	case why.Requeued:
		if r.RequeueAfter > 0 {
			what += " after " + waitedFor(r.RequeueAfter)
		}
	case why.Succeeded:
	}
	fmt.Fprintf(text, "  %s %s %s\n", mark, what, s.paint(faint,
		fmt.Sprintf("(%s, waited %s, took %s)", many(r.Folded, "event"), waitedFor(r.Waited), waitedFor(r.Duration))))
}

func objectName(o *why.Object) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return printable(strings.TrimSpace(o.Kind + " " + name))
}

// printable escapes control characters, such as colour sequences: any client that may write objects controls names,
// fields and messages. Line breaks are escaped as well, so one record cannot look like two.
func printable(text string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.IndexFunc(text, odd) < 0 {
		return text
	}
	var shown strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			shown.WriteString("\\n")
		case odd(r):
			fmt.Fprintf(&shown, "\\u%04x", r)
		default:
			shown.WriteRune(r)
		}
	}
	return shown.String()
}

func writerNames(writers []why.Writer) string {
	names := make([]string, 0, len(writers))
	for _, w := range writers {
		name := w.Manager
		if w.Subresource != "" {
			name += ", " + w.Subresource
		}
		names = append(names, printable(name))
	}
	return strings.Join(names, " and ")
}

// overrun prints that newer records replaced some before this command read them.
func overrun(n int) string {
	if n == 1 {
		return "1 reconcile is not shown: newer records replaced it before it was read"
	}
	return fmt.Sprintf("%d reconciles are not shown: newer records replaced them before they were read", n)
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// causeTypes are the columns of the totals.
var causeTypes = []why.CauseType{
	why.Listed, why.Created, why.Updated, why.Deleted, why.Resynced, why.Generic, why.Retried, why.Timer, why.Unknown,
}

func (a verbs) printTotals(summary why.Summary, what string, o whyOptions) error {
	if what != "" {
		kind, name, err := whichObject(what, summary)
		if err != nil {
			return err
		}
		if name != "" || o.namespace != "" {
			return &cmdutil.UsageError{Message: "totals are counted per controller, not per object", Hints: []string{"for a whole kind: " + a.Command("why", a.DefaultName(), "--totals", strings.ToLower(kind))}}
		}
		summary.Controllers = slices.DeleteFunc(summary.Controllers, func(c why.ControllerSummary) bool { return c.Kind != kind })
	}
	if o.format == cmdutil.OutputJSON {
		return a.PrintJSON(summary)
	}
	// One name may stand for several controllers.
	label := func(c why.ControllerSummary) string {
		if slices.ContainsFunc(summary.Controllers, func(other why.ControllerSummary) bool { return other.Name == c.Name && other.Kind != c.Kind }) {
			return c.Name + " " + c.Kind
		}
		return c.Name
	}
	table := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprint(table, "CONTROLLER\tRECONCILES\tFOLDED\tFILTERED\tWRITES\tNO-OPS\tOWN ECHOES\tLOOPS\tUSER CHANGES\tRECONCILES EACH\tWRITES EACH\n")
	for _, c := range summary.Controllers {
		each, writes := "-", "-"
		if c.UserChanges > 0 {
			each, writes = fmt.Sprintf("%.1f", c.ReconcilesPerChange), fmt.Sprintf("%.1f", c.WritesPerChange)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n",
			label(c), c.Reconciles, c.Folded, c.Filtered, c.Writes, c.NoOp, c.SelfInflicted, c.Loops, c.UserChanges, each, writes)
	}
	fmt.Fprint(table, "\nCAUSES")
	for _, cause := range causeTypes {
		fmt.Fprintf(table, "\t%s", strings.ToUpper(string(cause)))
	}
	fmt.Fprintln(table)
	for _, c := range summary.Controllers {
		fmt.Fprint(table, label(c))
		for _, cause := range causeTypes {
			fmt.Fprintf(table, "\t%d", c.Causes[cause])
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nSince %s. Kept: %s of %s", a.When(summary.Since), many(summary.Kept.Records, "record"), many(summary.Kept.Objects, "object"))
	if dropped := summary.Dropped; dropped.Records > 0 || dropped.Causes > 0 {
		fmt.Fprintf(a.Out, ". Dropped: %s and %s", many(int(dropped.Records), "record"), many(int(dropped.Causes), "cause"))
	}
	fmt.Fprintln(a.Out, ".")
	return nil
}
