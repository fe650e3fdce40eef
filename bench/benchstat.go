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

// measured holds the samples of one of two ways to do the same thing.
type measured struct {
	name    string
	samples map[string][]time.Duration // by metric
}

// benchstat is the result of Go's program of that name for two sets of samples: medians, variation, and whether each
// difference is significant.
type benchstat struct {
	table string
	// differs reports for each metric whether the difference is significant.
	differs map[string]bool
}

// compare compares two sets of samples with benchstat, which it builds from the tools module.
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

// lines formats the samples as `go test -bench` prints them.
func (m measured) lines(subject string) []byte {
	var text bytes.Buffer
	for what, samples := range m.samples {
		for _, one := range samples {
			fmt.Fprintf(&text, "Benchmark%s 1 %d %s-ns/op\n", subject, one.Nanoseconds(), what)
		}
	}
	return text.Bytes()
}

// read finds the verdicts in the table: a percentage for a significant difference, a tilde for none.
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
		return fmt.Errorf("the table of benchstat does not have the expected rows:\n%s", b.table)
	}
	return nil
}
