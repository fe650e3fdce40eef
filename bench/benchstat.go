// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// measured is what one of two ways to do something has measured, again and again.
type measured struct {
	name    string
	samples map[string][]time.Duration // by what was measured
}

// benchstat is what Go's program of that name says about two ways: medians, how far the samples are apart, and whether the
// difference could as well be chance.
type benchstat struct {
	table string
	// differs has what was measured and is not the same, beyond chance.
	differs map[string]bool
}

// compare lets benchstat, which is built from the tools module, compare two ways to do the same.
func compare(ctx context.Context, e environment, subject string, base, other measured) (benchstat, error) {
	program := filepath.Join(e.work, "benchstat")
	build := exec.CommandContext(ctx, "go", "build", "-C", "tools", "-o", program, "golang.org/x/perf/cmd/benchstat")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return benchstat{}, fmt.Errorf("building benchstat: %w\n%s", err, out)
	}
	var arguments []string
	for _, one := range []measured{base, other} {
		path := filepath.Join(e.work, one.name)
		if err := os.WriteFile(path, one.lines(subject), 0o600); err != nil {
			return benchstat{}, err
		}
		arguments = append(arguments, one.name+"="+path)
	}
	run := exec.CommandContext(ctx, program, arguments...)
	var table, complaints bytes.Buffer
	run.Stdout, run.Stderr = &table, &complaints
	if err := run.Run(); err != nil {
		return benchstat{}, fmt.Errorf("%w\n%s", err, complaints.String())
	}
	result := benchstat{table: strings.Trim(table.String(), "\n"), differs: map[string]bool{}}
	return result, result.read(base)
}

// lines are the samples as `go test -bench` prints them.
func (m measured) lines(subject string) []byte {
	var text bytes.Buffer
	for what, samples := range m.samples {
		for _, one := range samples {
			fmt.Fprintf(&text, "Benchmark%s 1 %d %s-ns/op\n", subject, one.Nanoseconds(), what)
		}
	}
	return text.Bytes()
}

// read finds the verdicts in the table: a difference has a percentage, and chance a tilde.
func (b benchstat) read(base measured) error {
	what := ""
	for line := range strings.Lines(b.table) {
		for one := range base.samples {
			if strings.Contains(line, one+"-sec/op") {
				what = one
			}
		}
		if before, _, found := strings.Cut(line, "(p="); found && what != "" {
			b.differs[what] = !strings.Contains(before, "~")
		}
	}
	if len(b.differs) != len(base.samples) {
		return fmt.Errorf("benchstat's table has other rows than expected:\n%s", b.table)
	}
	return nil
}
