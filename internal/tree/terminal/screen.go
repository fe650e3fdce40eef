// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"slices"
	"strings"
)

// Control sequences of terminals.
const (
	// The alternate screen preserves the content of the terminal. Long lines are cut, not wrapped.
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	// Terminals that support synchronized updates show everything in between at once. Others ignore it.
	beginUpdate = "\x1b[?2026h\x1b[H"
	endUpdate   = "\x1b[J\x1b[?2026l"
	endOfLine   = "\x1b[K"
)

// Screen is a terminal that is always drawn as a whole.
type Screen struct {
	out  io.Writer
	last []string
	size [2]int
}

// OpenScreen takes over the terminal until Close.
func OpenScreen(out io.Writer) *Screen {
	_, _ = io.WriteString(out, enterScreen)
	return &Screen{out: out}
}

// Draw shows the lines, which must fit. It writes only changes, and does not clear the screen first, so the screen
// does not flicker.
func (s *Screen) Draw(lines []string, width, height int) {
	if slices.Equal(lines, s.last) && s.size == [2]int{width, height} {
		return
	}
	s.last, s.size = lines, [2]int{width, height}
	frame := beginUpdate + strings.Join(lines, endOfLine+"\r\n") + endOfLine + endUpdate
	_, _ = io.WriteString(s.out, frame)
}

// Close restores the terminal.
func (s *Screen) Close() { _, _ = io.WriteString(s.out, leaveScreen) }
