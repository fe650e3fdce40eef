// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// carriage ends lines as a terminal wants it that does not do so by itself.
type carriage struct{ out io.Writer }

func (c *carriage) Write(data []byte) (int, error) {
	if _, err := c.out.Write(bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, fmt.Errorf("writing to the terminal: %w", err)
	}
	return len(data), nil
}

// Colours and weights of text on a terminal, as escape sequences.
const (
	spinnerFrames   = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
	spinnerInterval = 100 * time.Millisecond
	// stillInterval is the maximum time without output if there is no terminal, so the program does not look stuck.
	stillInterval = 30 * time.Second

	eraseLine = "\r\x1b[K"
	Green     = "\x1b[32m"
	Red       = "\x1b[31m"
	NoColour  = "\x1b[0m"
)

// Display shows the steps of something that takes a while. On a terminal, finished steps stand with a check mark
// above one line for the running step, which is drawn again and again. Elsewhere there is one plain line per
// finished step, and one now and then for a step that takes long.
type Display struct {
	out    io.Writer
	width  int // 0: no terminal
	colour bool
	now    func() time.Time

	mu      sync.Mutex // guards the rest and writes to out
	running string     // text of the running step; empty when there is none
	since   time.Time  // when the elapsed time beside the running step began; zero: show none
	frame   int
	drawn   bool // the running line is on the terminal and must be erased before anything else is written
}

// NewDisplay returns a display on standard error. A quiet one shows nothing.
func (a *App) NewDisplay(quiet bool) *Display {
	d := &Display{out: a.Err, width: a.ErrWidth, colour: a.Colour, now: a.Now, since: a.Now()}
	if quiet {
		d.out, d.width = io.Discard, 0
	}
	return d
}

// Animate draws the running step until the returned function is called.
func (d *Display) Animate() (stop func()) {
	interval, show := spinnerInterval, d.draw
	if !d.Live() {
		interval, show = stillInterval, d.still
	}
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				show()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
		d.mu.Lock()
		defer d.mu.Unlock()
		d.running = ""
		d.erase()
	}
}

// Busy shows the current activity with its duration; an empty text clears it.
func (d *Display) Busy(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text == "" {
		d.erase()
	}
	if d.running == "" {
		d.since = d.now()
	}
	d.running = text
}

// Paint colours a text, if there may be colours.
func (d *Display) Paint(colour, text string) string {
	if !d.colour {
		return text
	}
	return colour + text + NoColour
}

// UseRawTerminal is for a terminal that gives keys as they are typed: it does not begin a line by itself.
func (d *Display) UseRawTerminal() { d.out = &carriage{out: d.out} }

// Live reports whether the display is a terminal, where lines can be replaced.
func (d *Display) Live() bool { return d.width > 0 }

// Title writes a line above the steps that follow.
func (d *Display) Title(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	fmt.Fprintf(d.out, format+"\n", args...)
}

// Run sets the current activity. Only a terminal shows it at once.
func (d *Display) Run(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = text
}

// Done shows that a step has finished.
func (d *Display) Done(text string, elapsed time.Duration) { d.finish("✓", Green, text, elapsed) }

// failed shows that a step has failed.
func (d *Display) failed(text string, elapsed time.Duration) { d.finish("✗", Red, text, elapsed) }

func (d *Display) finish(mark, colour, text string, elapsed time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = ""
	if !d.Live() {
		fmt.Fprintf(d.out, "  %s (%s)\n", text, Short(elapsed))
		return
	}
	d.erase()
	if d.colour {
		mark = colour + mark + NoColour
	}
	fmt.Fprintf(d.out, " %s %s  %s\n", mark, text, Short(elapsed))
}

// still prints that a step is still running, without a terminal.
func (d *Display) still() {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.running == "":
	case d.since.IsZero():
		fmt.Fprintf(d.out, "  still %s\n", d.running)
	default:
		fmt.Fprintf(d.out, "  still %s (%s)\n", d.running, Short(d.now().Sub(d.since)))
	}
}

// draw shows the running step with the next picture of the spinner.
func (d *Display) draw() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == "" {
		return
	}
	frames := []rune(spinnerFrames)
	text := fmt.Sprintf(" %c %s", frames[d.frame%len(frames)], d.running)
	d.frame++
	if !d.since.IsZero() {
		text += "  " + Short(d.now().Sub(d.since))
	}
	line := []rune(text)
	// A line that wraps could not be erased as one.
	if len(line) >= d.width {
		line = line[:d.width-1]
	}
	fmt.Fprint(d.out, eraseLine+string(line))
	d.drawn = true
}

func (d *Display) erase() {
	if d.drawn {
		fmt.Fprint(d.out, eraseLine)
		d.drawn = false
	}
}

// Short formats a duration for people: 52ms, 0.64s, 12s, 5m32s.
func Short(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	default:
		// 5m32s, 5m, 3h: a zero that Duration.String adds says nothing.
		text := d.Round(time.Second).String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		return text
	}
}
