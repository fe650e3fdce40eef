// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"encoding/json"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
)

const dim = "\x1b[2m"

// devShow shows a session: a line for each round, and the operator's log below.
type devShow struct {
	app     verbs
	options devOptions
	display *cmdutil.Display
	keys    <-chan string
	end     func()
}

func (a verbs) newDevShow(o devOptions) *devShow {
	s := &devShow{app: a, options: o, display: a.NewDisplay(false)}
	release := func() {}
	if a.ErrSize != nil && a.Keys != nil {
		// Without a keyboard it is still worth looking at.
		if keys, given, err := a.Keys(); err == nil {
			s.keys, release = keys, given
			s.display.UseRawTerminal()
		}
	}
	stop := s.display.Animate()
	s.end = sync.OnceFunc(func() {
		stop()
		release()
	})
	return s
}

func (s *devShow) begin(title, log, kubectl string) {
	s.display.Title("%s", title)
	s.display.Title("  Operator log: %s", log)
	if kubectl != "" {
		s.display.Title("  In another terminal: %s", kubectl)
	}
	if s.keys != nil {
		s.display.Title("  %s", dev.KeyHelp)
	}
}

// Busy implements dev.Screen.
func (s *devShow) Busy(text string) { s.display.Busy(text) }

// Round implements dev.Screen.
func (s *devShow) Round(r dev.Round) {
	if s.options.format == cmdutil.OutputJSON {
		// If this cannot be written, its reader is gone.
		_ = json.NewEncoder(s.app.Out).Encode(r)
		return
	}
	mark, colour := "✓", cmdutil.Green
	if r.Problem != nil {
		mark, colour = "✗", cmdutil.Red
	}
	if !s.display.Live() {
		s.display.Title("%s", r.Line())
	} else {
		width, _ := s.app.ErrSize()
		lines := foldParts(r.Line(), width-2) // for the mark
		s.display.Title("%s %s", s.display.Paint(colour, mark), lines[0])
		for _, line := range lines[1:] {
			s.display.Title("  %s", line)
		}
	}
	details := r.Details()
	if r.Problem != nil && r.Problem.Step == dev.StepRun && !s.options.quiet {
		details = details[len(r.Problem.Lines):] // the end of the log stands right above
	}
	for _, line := range details {
		s.display.Title("    %s", line)
	}
}

// Say implements dev.Screen.
func (s *devShow) Say(text string) { s.display.Title("  %s", text) }

// Log implements dev.Screen.
func (s *devShow) Log(line string) {
	if s.options.quiet || s.options.format == cmdutil.OutputJSON {
		return
	}
	if !s.display.Live() {
		s.display.Title("  | %s", line)
		return
	}
	s.display.Title("%s %s", s.display.Paint(dim, "  │"), line)
}

// partSeparator is what stands between the parts of a status line.
const partSeparator = " · "

// foldParts breaks a status line between its parts, so that the lines fit. All but the first are indented as far as the time
// of the first is long.
func foldParts(line string, width int) []string {
	const indent = "         "
	var lines []string
	current := ""
	for i, part := range strings.Split(line, partSeparator) {
		switch longer := current + partSeparator + part; {
		case i == 0:
			current = part
		case utf8.RuneCountInString(longer) <= width:
			current = longer
		default:
			lines = append(lines, current)
			current = indent + "· " + part
		}
	}
	return append(lines, current)
}
