// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/opdock/opdock/cluster"
)

// goal is a figure that Opdock promises, and whether this run kept it.
type goal struct {
	what, wanted, measured string
	kept                   bool
}

// printer writes lines of the page.
type printer func(format string, args ...any)

// sectionPage is what a section adds to the page: its tables and, at the end, what was promised and what was measured.
func sectionPage(name, title string, took time.Duration, body func(printer), goals []goal) string {
	var page strings.Builder
	p := printer(func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) })
	p("%s\n## %s\n", marker(name), title)
	p("Measured in %s, %s.\n", took.Round(time.Second), describeMachine())
	body(p)
	if len(goals) == 0 {
		return page.String()
	}
	p("\n| promised | | measured | |")
	p("|---|---|---:|---|")
	for _, g := range goals {
		kept := "kept"
		if !g.kept {
			kept = "**missed**"
		}
		p("| %s | %s | %s | %s |", g.what, g.wanted, g.measured, kept)
	}
	return page.String()
}

// joinPage puts the sections together. Those that were not measured this time are taken over from the page as it was.
func joinPage(old string, order []string, measured map[string]string) string {
	var page strings.Builder
	fmt.Fprintf(&page, `# Benchmarks

Written by `+"`make bench`"+`; do not edit. Kubernetes %s. What counts are the ratios: all contenders of a section took
turns on the same machine in the same run.
`, cluster.KubernetesVersion)
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

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func times(ratio float64) string { return fmt.Sprintf("%.2f ×", ratio) }

func describeMachine() string {
	return fmt.Sprintf("on %s/%s with %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
