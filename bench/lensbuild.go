// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opdock/opdock/internal/instrument"
)

// lensBuildLimit is how many times as long as go build the build with marks may take. lensBuilds is how often each is
// measured.
const (
	lensBuildLimit = 1.15
	lensBuilds     = 5
)

// lensedBuilds holds the times of plain builds of a scaffolded project, and of builds that mark reconciles for the
// lens.
type lensedBuilds struct {
	// first is the first build with marks. It also compiles the packages that depend on controller-runtime.
	first         time.Duration
	plain, marked []time.Duration
}

func (b *lensedBuilds) ratio() float64 { return ratio(median(b.marked), median(b.plain)) }

// markedBuild is a project to build with and without marks.
type markedBuild struct {
	project instrument.Project
	changes int
}

// measureLensBuilds builds with and without marks in turns, each time after a change to the operator.
func measureLensBuilds(ctx context.Context, e environment, programs string) (b lensedBuilds, err error) {
	say("Lens: scaffolding a project")
	s := &scaffoldBench{work: filepath.Join(e.work, "lens-build"), programs: programs}
	if _, err := s.ours(ctx, "marked"); err != nil {
		return b, err
	}
	m := &markedBuild{project: instrument.Project{
		Dir: filepath.Join(s.work, "marked"), Env: os.Environ(),
		// With a separate directory for the copies, the first build finds none of them in Go's build cache.
		CopiesDir: filepath.Join(e.work, "instrumented"), StateDir: filepath.Join(e.work, "instrumented-state"),
	}}
	if _, err := m.build(ctx, false); err != nil {
		return b, err
	}
	if b.first, err = m.build(ctx, true); err != nil {
		return b, err
	}
	rounds := min(e.runs, lensBuilds)
	for round := range rounds {
		for turn := range 2 {
			marked := (round+turn)%2 == 1
			took, err := m.build(ctx, marked)
			if err != nil {
				return b, err
			}
			if marked {
				b.marked = append(b.marked, took)
			} else {
				b.plain = append(b.plain, took)
			}
		}
		say("Lens: build %d of %d, plain %s, with marks %s", round+1, rounds, ms(b.plain[round]), ms(b.marked[round]))
	}
	return b, nil
}

// build changes the controller package and builds the operator, with the flags of opdock dev.
func (m *markedBuild) build(ctx context.Context, marked bool) (time.Duration, error) {
	m.changes++
	source := fmt.Sprintf("package controller\n\n// Change differs in each build.\nvar Change = func() int { return %d }\n", m.changes)
	if err := os.WriteFile(filepath.Join(m.project.Dir, "internal", "controller", "change.go"), []byte(source), 0o600); err != nil {
		return 0, err
	}
	began := time.Now()
	var flags []string
	if marked {
		// opdock dev checks before each build whether the prepared copy is still up to date.
		how, err := m.project.Prepare(ctx)
		if err != nil {
			return 0, err
		}
		flags = how.Flags
	}
	err := runIn(ctx, m.project.Dir, "go", slices.Concat([]string{"build", "-o", fmt.Sprintf("bin/operator-%t", marked), "-ldflags=-w", "-buildvcs=false"}, flags, []string{"./cmd"})...)
	return time.Since(began), err
}

func (b *lensedBuilds) write(p printer) {
	p("The build that marks reconciles for the lens is compared with the same `go build` without marks. Before each build, the")
	p("controller package of a scaffolded project changes. They took turns, %d times each. The time with marks includes the check that", len(b.plain))
	p("`opdock dev` makes before each build. The first build with marks also compiles the packages that depend on controller-runtime. It took")
	p("%s.\n", ms(b.first))
	p("| build | median | fastest | slowest |")
	p("|---|---:|---:|---:|")
	p("| `go build` | %s | %s | %s |", ms(median(b.plain)), ms(fastest(b.plain)), ms(slowest(b.plain)))
	p("| with marks | %s | %s | %s |", ms(median(b.marked)), ms(fastest(b.marked)), ms(slowest(b.marked)))
}
