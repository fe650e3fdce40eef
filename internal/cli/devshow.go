// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/opdock/opdock/internal/dev"
)

const dim = "\x1b[2m"

// devShow shows a session: a line for each round, and the operator's log below.
type devShow struct {
	app     *App
	options devOptions
	display *display
	keys    <-chan string
	end     func()
}

func (a *App) newDevShow(o devOptions) *devShow {
	s := &devShow{app: a, options: o, display: a.newDisplay(false)}
	release := func() {}
	if a.ErrSize != nil && a.Keys != nil {
		// Without a keyboard it is still worth looking at.
		if keys, given, err := a.Keys(); err == nil {
			s.keys, release = keys, given
			// A terminal that gives keys as they are typed does not begin a line by itself.
			s.display.out = &carriage{out: s.display.out}
		}
	}
	stop := s.display.animate()
	s.end = sync.OnceFunc(func() {
		stop()
		release()
	})
	return s
}

func (s *devShow) begin(title, log, kubectl string) {
	s.display.title("%s", title)
	s.display.title("  the operator's log: %s", log)
	if kubectl != "" {
		s.display.title("  in another terminal: %s", kubectl)
	}
	if s.keys != nil {
		s.display.title("  %s", dev.KeyHelp)
	}
}

// Busy implements dev.Screen.
func (s *devShow) Busy(text string) {
	s.display.mu.Lock()
	defer s.display.mu.Unlock()
	if text == "" {
		s.display.erase()
	}
	if s.display.running == "" {
		s.display.since = s.app.Now()
	}
	s.display.running = text
}

// Round implements dev.Screen.
func (s *devShow) Round(r dev.Round) {
	if s.options.format == outputJSON {
		// Whoever reads this is gone if it cannot be written.
		_ = json.NewEncoder(s.app.Out).Encode(r)
		return
	}
	mark, colour := "✓", green
	if r.Problem != nil {
		mark, colour = "✗", red
	}
	if !s.display.live() {
		s.display.title("%s", r.Line())
	} else {
		width, _ := s.app.ErrSize()
		lines := foldParts(r.Line(), width-2) // for the mark
		s.display.title("%s %s", s.paint(colour, mark), lines[0])
		for _, line := range lines[1:] {
			s.display.title("  %s", line)
		}
	}
	details := r.Details()
	if r.Problem != nil && r.Problem.Step == dev.StepRun && !s.options.quiet {
		details = details[len(r.Problem.Lines):] // the end of the log stands right above
	}
	for _, line := range details {
		s.display.title("    %s", line)
	}
}

// Say implements dev.Screen.
func (s *devShow) Say(text string) { s.display.title("  %s", text) }

// Log implements dev.Screen.
func (s *devShow) Log(line string) {
	if s.options.quiet || s.options.format == outputJSON {
		return
	}
	if !s.display.live() {
		s.display.title("  | %s", line)
		return
	}
	s.display.title("%s %s", s.paint(dim, "  │"), line)
}

func (s *devShow) paint(colour, text string) string {
	if !s.display.colour {
		return text
	}
	return colour + text + noColour
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

// carriage ends lines as a terminal wants it that does not do so by itself.
type carriage struct{ out io.Writer }

func (c *carriage) Write(data []byte) (int, error) {
	if _, err := c.out.Write(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, fmt.Errorf("writing to the terminal: %w", err)
	}
	return len(data), nil
}
