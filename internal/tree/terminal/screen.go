// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"slices"
	"strings"
)

// What a terminal is told.
const (
	// The alternate screen leaves what was on the terminal as it was; long lines are cut rather than wrapped.
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	// Terminals that know about it show everything in between at once; others ignore it.
	beginUpdate = "\x1b[?2026h\x1b[H"
	endUpdate   = "\x1b[J\x1b[?2026l"
	endOfLine   = "\x1b[K"
)

// Screen is a terminal that is drawn on as a whole.
type Screen struct {
	out  io.Writer
	last []string
	size [2]int
}

// OpenScreen takes the terminal over until Close.
func OpenScreen(out io.Writer) *Screen {
	_, _ = io.WriteString(out, enterScreen)
	return &Screen{out: out}
}

// Draw shows the lines, which have to fit. It writes only if something has changed, and without clearing the screen
// first, so that nothing flickers.
func (s *Screen) Draw(lines []string, width, height int) {
	if slices.Equal(lines, s.last) && s.size == [2]int{width, height} {
		return
	}
	s.last, s.size = lines, [2]int{width, height}
	frame := beginUpdate + strings.Join(lines, endOfLine+"\r\n") + endOfLine + endUpdate
	_, _ = io.WriteString(s.out, frame)
}

// Close gives the terminal back as it was.
func (s *Screen) Close() { _, _ = io.WriteString(s.out, leaveScreen) }
