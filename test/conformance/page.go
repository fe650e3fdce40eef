// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// tally counts the specs of a group.
type tally struct{ specs, passed, failed, leftOut int }

func (t *tally) add(s spec) {
	t.specs++
	switch s.State {
	case passed:
		t.passed++
	case leftOut:
		t.leftOut++
	default:
		t.failed++
	}
}

// page returns docs/conformance.md.
func page(all results, exclusions []exclusion) (string, error) {
	var text strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	p(`# Conformance

` + "`make conformance`" + ` writes this page; do not edit it.

It compiles upstream's end-to-end tests from the Go module proxy, at the version of the embedded control plane. It runs
their Conformance specs on a cluster with three simulated nodes, and considers the groups whose specs are about the
control plane. Specs that need a container or a kubelet are left out, because simulated nodes have none. They are
listed [with the reasons](#left-out). All others run, and all must pass.

` + "`make conformance LENS=1`" + ` sends all requests of the specs through [the lens](trace.md), the proxy that ` + "`opdock dev`" + `,
` + "`opdock trace`" + ` and ` + "`opdock prove`" + ` put between an operator and the API server.`)
	for _, way := range []struct{ name, title string }{{"direct", "Directly"}, {"lens", "Through the lens"}} {
		run, found := all[way.name]
		if !found {
			continue
		}
		p("\n## %s\n", way.title)
		p("Kubernetes %s, %d specs at a time, in %s.\n", run.Kubernetes, run.Procs, time.Duration(run.Seconds)*time.Second)
		table(p, run.Specs)
		failures(p, run.Specs)
	}
	run, found := all["direct"]
	if !found {
		return text.String(), nil
	}
	chosen, err := choose(run.Specs, exclusions)
	if err != nil {
		return "", err
	}
	p("\n## Left out\n")
	p("The list is `%s`. `make conformance` fails if an entry matches no spec.", leftOutPath)
	for _, one := range exclusions {
		p("\n%s\n", wrap(one.Reason))
		for _, s := range run.Specs {
			if chosen.leftOut[s.Name] == one.Reason {
				p("- %s", short(s.Name))
			}
		}
	}
	p("\n## Passed\n\nIn the direct run:\n")
	for _, s := range run.Specs {
		if s.State == passed {
			p("- %s", short(s.Name))
		}
	}
	return text.String(), nil
}

func table(p func(string, ...any), specs []spec) {
	byGroup, sum := map[string]*tally{}, &tally{}
	for _, s := range specs {
		if byGroup[s.group()] == nil {
			byGroup[s.group()] = &tally{}
		}
		byGroup[s.group()].add(s)
		sum.add(s)
	}
	p("| group | specs | passed | failed | left out |")
	p("|---|---:|---:|---:|---:|")
	for _, group := range groups {
		if t := byGroup[group]; t != nil {
			p("| sig-%s | %d | %d | %d | %d |", group, t.specs, t.passed, t.failed, t.leftOut)
		}
	}
	p("| all | %d | %d | %d | %d |", sum.specs, sum.passed, sum.failed, sum.leftOut)
}

func failures(p func(string, ...any), specs []spec) {
	began := false
	for _, s := range specs {
		if s.State == passed || s.State == leftOut {
			continue
		}
		if !began {
			p("\nFailed:\n")
			began = true
		}
		message, _, _ := strings.Cut(s.Failure, "\n")
		p("- %s: %s", short(s.Name), message)
	}
}

// short removes the part that all names on the page share, and quotes the rest.
func short(name string) string {
	return "`" + strings.ReplaceAll(name, " [Conformance]", "") + "`"
}

func wrap(text string) string {
	const width = 118
	var lines strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > width:
			lines.WriteString("\n")
			column = 0
		default:
			lines.WriteString(" ")
			column++
		}
		lines.WriteString(word)
		column += len(word)
	}
	return lines.String()
}
