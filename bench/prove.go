// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/prove"
)

// The goals of a campaign on a scaffolded operator.
const (
	proveRunsPerHour = 1200
	proveLongest     = 10 * time.Minute
	proveMemory      = 4 << 30
)

// proveSection runs a whole campaign with default settings on a newly scaffolded project.
func proveSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	s := &scaffoldBench{work: filepath.Join(e.work, "prove"), programs: filepath.Join(e.work, "prove-programs")}
	say("Building opdock and a project")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", s.programs+"/", "./cmd/opdock").CombinedOutput(); err != nil { //nolint:gosec // a directory of the benchmark
		return "", fmt.Errorf("building: %w\n%s", err, out)
	}
	if _, err := s.ours(ctx, "proven"); err != nil {
		return "", err
	}
	say("Running a campaign, which takes minutes")
	command := exec.CommandContext(ctx, filepath.Join(s.programs, "opdock"), "prove", "--output", "json") //nolint:gosec // built above
	command.Dir, command.Env, command.Stderr = filepath.Join(s.work, "proven"), append(os.Environ(), "OPDOCK_CONTROLPLANE="+e.binary), os.Stderr
	var output strings.Builder
	command.Stdout = &output
	if err := command.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	memory, err := peakOfTree(command.Process.Pid, ended)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1 means that there are findings
		return "", err
	}
	var report prove.Report
	if err := json.Unmarshal([]byte(output.String()), &report); err != nil {
		return "", fmt.Errorf("reading the report: %w", err)
	}
	totals := report.Totals()
	perHour := float64(totals.Judged()) / report.Took.Hours()
	return sectionPage("prove", "A campaign of opdock prove", time.Since(began), func(p printer) {
		p("`opdock prove` runs with default settings on an operator created by `opdock init` and `opdock create api`. The time begins with")
		p("the build of the operator and ends with the report. A run counts if it was disturbed and reached a verdict. Memory is the")
		p("proportional set size of the command and of all processes that it starts, sampled every second.\n")
		p("| time | disturbed runs | undisturbed runs | not judged | findings | flaky findings | memory, peak |")
		p("|---:|---:|---:|---:|---:|---:|---:|")
		p("| %s | %d | %d | %d | %d | %d | %d MB |", report.Took.Round(time.Second), totals.Judged(), totals.Undisturbed, totals.Failed, totals.Findings, totals.Flaky, memory>>20)
	}, []goal{
		{"disturbed runs in an hour", fmt.Sprintf("at least %d", proveRunsPerHour), fmt.Sprintf("%.0f", perHour), perHour >= proveRunsPerHour},
		{"a whole campaign", fmt.Sprintf("at most %.0f min", proveLongest.Minutes()), report.Took.Round(time.Second).String(), report.Took <= proveLongest},
		{"memory of the campaign", "at most 4 GB", fmt.Sprintf("%d MB", memory>>20), memory <= proveMemory},
		{"findings on an operator without a known defect, flaky ones included", "0", strconv.Itoa(totals.Findings + totals.Flaky), totals.Findings+totals.Flaky == 0},
	}), nil
}

// peakOfTree samples the memory of a process and its descendants until it ends. It returns the error that the process
// ended with.
func peakOfTree(pid int, ended <-chan error) (peak uint64, err error) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-ticker.C:
			peak = max(peak, memoryOfTree(pid, childrenByParent()))
		}
	}
}

func memoryOfTree(pid int, children map[int][]int) uint64 {
	sum, err := proportional(pid)
	if err != nil {
		sum = 0 // the process has just ended
	}
	for _, child := range children[pid] {
		sum += memoryOfTree(child, children)
	}
	return sum
}

// childrenByParent returns the child processes of each process.
func childrenByParent() map[int][]int {
	children := map[int][]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // the process has just ended
		}
		// PID (NAME) STATE PARENT …, where the name may contain spaces and brackets.
		_, rest, _ := strings.Cut(string(content[strings.LastIndexByte(string(content), ')')+1:]), " ")
		fields := strings.Fields(rest)
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 2 { //nolint:mnd // the state and the parent
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}
