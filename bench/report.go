// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/opdock/opdock/cluster"
)

// goal is a figure that Opdock promises, and the result of this run.
type goal struct {
	what, target, measured string
	met                    bool
}

type printer func(format string, args ...any)

// sectionPage returns the text of a section: its tables and, at the end, its goals.
func sectionPage(name, title string, took time.Duration, body func(printer), goals []goal) string {
	var page strings.Builder
	p := printer(func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) })
	p("%s\n## %s\n", marker(name), title)
	p("Measured in %s, %s.\n", took.Round(time.Second), describeMachine())
	body(p)
	if len(goals) == 0 {
		return reflow(page.String())
	}
	p("\n| goal | target | measured | |")
	p("|---|---|---:|---|")
	for _, g := range goals {
		verdict := "met"
		if !g.met {
			verdict = "**missed**"
		}
		p("| %s | %s | %s | %s |", g.what, g.target, g.measured, verdict)
	}
	return reflow(page.String())
}

// joinPage joins the sections. It keeps the old text of the sections that were not measured.
func joinPage(old string, order []string, measured map[string]string) string {
	var page strings.Builder
	page.WriteString(reflow(fmt.Sprintf(`# Benchmarks

`+"`make bench`"+` writes this page; do not edit it. Kubernetes %s. Compare ratios, not absolute times: in each section, the
contenders took turns on the same machine in the same run.
`, cluster.KubernetesVersion)))
	for _, name := range order {
		text, ok := measured[name]
		if !ok {
			text = oldSection(old, name)
		}
		if text != "" {
			page.WriteString("\n" + strings.TrimRight(text, "\n") + "\n")
		}
	}
	return page.String()
}

func marker(name string) string { return "<!-- section " + name + " -->" }

func oldSection(page, name string) string {
	_, rest, found := strings.Cut(page, marker(name)+"\n")
	if !found {
		return ""
	}
	if end := strings.Index(rest, "<!-- section "); end >= 0 {
		rest = rest[:end]
	}
	return marker(name) + "\n" + rest
}

// columns is the maximum length of a line of prose on the page.
const columns = 118

// reflow breaks lines of prose, because their length depends on the figures in them. It does not change tables,
// headings and code.
func reflow(page string) string {
	var text strings.Builder
	var words []string
	flush := func() {
		width := 0
		for i, word := range words {
			length := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case width+1+length > columns:
				text.WriteByte('\n')
				width = -1
			default:
				text.WriteByte(' ')
			}
			text.WriteString(word)
			width += 1 + length
		}
		if len(words) > 0 {
			text.WriteByte('\n')
		}
		words = nil
	}
	inCode := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			inCode = !inCode
		} else if !inCode && strings.TrimSpace(line) != "" && !strings.ContainsAny(line[:1], "|#<") {
			words = append(words, strings.Fields(line)...)
			continue
		}
		flush()
		text.WriteString(line)
	}
	flush()
	return text.String()
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func times(ratio float64) string { return fmt.Sprintf("%.2f ×", ratio) }

func describeMachine() string {
	return fmt.Sprintf("on %s/%s with %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
