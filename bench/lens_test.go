// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestCPUOfProcess(t *testing.T) {
	// The name of a program may look like other fields.
	got, err := parseCPU("42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 0 0 123 45 6 7 20 0 9 0 1000 1 1")
	if err != nil || got != 1680*time.Millisecond {
		t.Errorf("got %s and %v, want 1.68s", got, err)
	}
	if _, err := parseCPU("42 (a) S 1"); err == nil {
		t.Error("parseCPU accepts a truncated line")
	}
	if now, err := cpuOfProcess(os.Getpid()); err != nil || now > time.Hour {
		t.Errorf("the CPU time of this process is %s, %v", now, err)
	}
}

func TestLensPageNamesLosingFigures(t *testing.T) {
	sides := func(direct, through time.Duration) [2]time.Duration { return [2]time.Duration{direct, through} }
	r := lensed{
		get: sides(time.Millisecond, 3*time.Millisecond), update: sides(time.Millisecond, 1500*time.Microsecond),
		events: 5000, rate: 600, added: 100 * time.Microsecond, cpu: sides(1, 2), heaps: []uint64{1 << 20, 2 << 20, 3 << 20, 4 << 20},
		flood: time.Second, recording: 1 << 20,
		fleet: lensedFleet{results: results{
			size: lensApps, racers: []racer{{name: directRacer}, {name: throughRacer}},
			runs: [][]raced{{{took: 4 * time.Second}}, {{took: 5 * time.Second}}},
		}, uses: []lensUse{{cpu: 700 * time.Millisecond, before: 40e6, after: 60e6, atMost: 61e6, recording: 3e6}}},
		builds: lensedBuilds{first: time.Minute, plain: []time.Duration{2 * time.Second}, marked: []time.Duration{2200 * time.Millisecond}},
	}
	page := r.page(environment{lensWrites: 100}, time.Minute)
	for _, want := range []string{
		"| 100 AppServices until Ready through the lens, against directly | at most 1.10 × | 1.25 × | **missed** |",
		"| added to a get, median | ≤ 1 ms | 2000 µs | **missed** |",
		"| added to an update, median | ≤ 1 ms | 500 µs | met |",
		"| added to a watch event, median | ≤ 1 ms at 1000/s | 100 µs at 600/s | **missed** |",
		"| build with marks, against `go build`, when only the operator changed | at most 1.15 × | 1.10 × | met |",
		"| through the lens | 5.00 s | 5.00 s | 5.00 s | 0.0 s | 0.00 s | 0.70 s |",
		"40 MB before the load, 60 MB after it, 61 MB at most",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not contain %q:\n%s", want, page)
		}
	}
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") && len([]rune(line)) > columns+1 {
			t.Errorf("too long: %s", line)
		}
	}
}
