// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// visible returns a text in one line, in which every character that would act instead of being read is spelled out:
// anyone who can write objects or logs can put the start of a colour or a change of direction into a message.
func visible(text string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }
	if strings.IndexFunc(text, odd) < 0 {
		return text
	}
	var shown strings.Builder
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&shown, "\\x%02x", text[at])
		case r == '\n':
			shown.WriteString("\\n")
		case r == '\t':
			shown.WriteString("\\t")
		case r == '\r':
			shown.WriteString("\\r")
		case unicode.IsPrint(r):
			shown.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&shown, "\\U%08x", r)
		default:
			fmt.Fprintf(&shown, "\\u%04x", r)
		}
		at += size
	}
	return shown.String()
}

// visibleLines does so for a text that may have several lines, such as the stack of a panic. Tabs become spaces.
func visibleLines(text string) []string {
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), "\r\n", "\n")
	lines := strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(visible(line), " ")
	}
	return lines
}

// visibleText is visibleLines as one text.
func visibleText(text string) string { return strings.Join(visibleLines(text), "\n") }

// cells returns how many columns of a terminal a visible text takes.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// middle shortens a text in its middle: names and values often differ at their ends.
func middle(text string, limit int) string {
	if cells(text) <= limit {
		return text
	}
	if limit < 2 {
		return "…"
	}
	runes := []rune(text)
	head, tail := 0, len(runes)
	for room := limit / 2; room-runeCells(runes[head]) >= 0; head++ {
		room -= runeCells(runes[head])
	}
	for room := limit - 1 - limit/2; tail > head && room-runeCells(runes[tail-1]) >= 0; tail-- {
		room -= runeCells(runes[tail-1])
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// wrap breaks a visible text at spaces into lines of at most limit columns. Words that are longer are broken.
func wrap(text string, limit int) []string {
	limit = max(limit, 8)
	var lines []string
	line := ""
	if trimmed := strings.TrimLeft(text, " "); len(text) > len(trimmed) && len(text)-len(trimmed) < limit/2 {
		line, text = text[:len(text)-len(trimmed)], trimmed // keeps the indentation of a first line
	}
	indented := line
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == indented && len(lines) == 0:
			line += word
		case cells(line)+1+cells(word) <= limit || cells(word) > limit && cells(line) < limit/2:
			line += " " + word // a word that fits nowhere may as well begin here
		default:
			lines = append(lines, line)
			line = word
		}
		for cells(line) > limit {
			head := fitting(line, limit)
			lines = append(lines, line[:head])
			line = line[head:]
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// fitting returns how many bytes of a text fit into limit columns, at least one character.
func fitting(text string, limit int) int {
	room := limit
	for at, r := range text {
		if room -= runeCells(r); room < 0 && at > 0 {
			return at
		}
	}
	return len(text)
}

// plural returns a count with its noun: "1 run", "2 runs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// took returns a duration as people say it.
func took(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + took(-d)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	text := ""
	if d >= time.Hour {
		text = fmt.Sprintf("%dh", d/time.Hour)
	}
	if minutes := d % time.Hour / time.Minute; minutes > 0 {
		text += fmt.Sprintf("%dm", minutes)
	}
	if seconds := d % time.Minute / time.Second; seconds > 0 {
		text += fmt.Sprintf("%ds", seconds)
	}
	return text
}

// moment returns a time within a run.
func moment(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }
