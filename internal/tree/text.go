// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// Why is how an object is, with the reason if it is not ready.
func (o Object) Why() string {
	text := o.Status
	if o.Reason != "" {
		text += " (" + o.Reason + ")"
	}
	if o.Message != "" {
		text += ": " + o.Message
	}
	return clean(text)
}

// Age is a time that has passed, in as few characters as make sense.
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

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

// line is text that does not know yet how much room there is for it.
type line []span

func (l line) width() int {
	total := 0
	for _, s := range l {
		total += columns(s.text)
	}
	return total
}

// cut makes the line fit; where something is missing there is an ellipsis.
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

// pad fills the line up with blanks.
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

// wrap breaks text into at most so many lines; the last one is cut if there is more.
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

// clean takes out what would do something to a terminal instead of being shown: anybody may write a message.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) {
			if unicode.IsSpace(r) {
				return ' '
			}
			return -1
		}
		return r
	}, text)
}

// columns is how wide a text is on a terminal.
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
