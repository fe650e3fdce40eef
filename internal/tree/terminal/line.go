// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"strings"

	"golang.org/x/text/width"
)

type style string

const (
	normal style = ""
	bold   style = "1"
	dim    style = "2"
	green  style = "32"
	yellow style = "33"
	red    style = "31"
)

// span is a piece of a line in one style.
type span struct {
	style style
	text  string
}

// line is text that is not cut to a width yet.
type line []span

func (l line) width() int {
	total := 0
	for _, s := range l {
		total += columns(s.text)
	}
	return total
}

// cut shortens the line to fit, and ends it with an ellipsis.
func (l line) cut(room int) line {
	if l.width() <= room {
		return l
	}
	var result line
	room-- // for the ellipsis
	for _, s := range l {
		var kept strings.Builder
		for _, r := range s.text {
			if room -= runeColumns(r); room < 0 {
				return append(result, span{s.style, kept.String() + "…"})
			}
			kept.WriteRune(r)
		}
		result = append(result, span{s.style, kept.String()})
	}
	return result
}

// pad fills the line with blanks.
func (l line) pad(room int) line {
	if missing := room - l.width(); missing > 0 {
		return append(l[:len(l):len(l)], span{normal, strings.Repeat(" ", missing)})
	}
	return l
}

func (l line) render(colour bool) string {
	var text strings.Builder
	for _, s := range l {
		if colour && s.style != normal && s.text != "" {
			text.WriteString("\x1b[" + string(s.style) + "m" + s.text + "\x1b[0m")
		} else {
			text.WriteString(s.text)
		}
	}
	return strings.TrimRight(text.String(), " ")
}

// wrap breaks text into up to most lines. The last line holds the rest and may be too long.
func wrap(text string, room, most int) []string {
	var lines []string
	current := ""
	words := strings.Fields(text)
	for i, word := range words {
		switch {
		case current == "":
			current = word
		case columns(current)+1+columns(word) <= room:
			current += " " + word
		case len(lines) == most-1:
			return append(lines, current+" "+strings.Join(words[i:], " "))
		default:
			lines = append(lines, current)
			current = word
		}
	}
	if current == "" {
		return nil
	}
	return append(lines, current)
}

// columns returns the width of a text on a terminal.
func columns(text string) int {
	total := 0
	for _, r := range text {
		total += runeColumns(r)
	}
	return total
}

func runeColumns(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}
