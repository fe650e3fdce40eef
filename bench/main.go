// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what Opdock promises and writes the results to docs/benchmarks.md. All figures of a table
// come from one run on one machine, with the contenders taking turns. Compare their ratios: the load of the machine
// affects all contenders alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

func main() { os.Exit(status()) }

func status() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

// environment holds the settings that all sections share.
type environment struct {
	binary string // the control plane
	work   string // a directory that is removed at the end
	runs   int
	pods   int
	// fleetRuns is the number of runs for each size of fleet. idle is how long the fleet is observed at rest.
	fleetRuns            int
	fleetSizes, kroSizes []int
	idle                 time.Duration
	profiles             string // the directory for profiles; empty: none
	// flood is how long a recorder is loaded with events.
	flood time.Duration
	// lensWrites is the number of writes that flood the lens. lensRuns is how often the fleet runs directly and
	// through it.
	lensWrites, lensRuns int
}

// sections are the parts of the page, in order.
var sections = []struct {
	name    string
	measure func(context.Context, environment) (string, error)
}{
	{"startup", startupSection},
	{"forks", forksSection},
	{"load", loadSection},
	{"generate", generateSection},
	{"fleet", fleetSection},
	{"quiet", quietSection},
	{"kro", kroSection},
	{"why", whySection},
	{"lens", lensSection},
	{"prove", proveSection},
	{"scaffold", scaffoldSection},
	{"dev", devSection},
	{"page", pageSection},
}

func run(ctx context.Context) error {
	ctrllog.SetLogger(logr.Discard()) // without a logger, controller-runtime prints a warning
	var e environment
	flag.IntVar(&e.runs, "runs", 7, "number of runs of each contender")
	flag.IntVar(&e.pods, "pods", 1000, "number of pods that the load test creates")
	e.fleetSizes, e.kroSizes = []int{100, 500, 1000}, []int{200, 1000}
	flag.Func("fleet-sizes", "numbers of AppServices, separated by commas (default 100,500,1000)", sizesOf(&e.fleetSizes))
	flag.Func("kro-sizes", "numbers of applications to compare the fleet and kro with, separated by commas (default 200,1000)", sizesOf(&e.kroSizes))
	flag.IntVar(&e.fleetRuns, "fleet-runs", 3, "number of rounds for each number of AppServices or applications; up to three times as many for the smaller numbers")
	flag.StringVar(&e.profiles, "profiles", "", "existing directory for profiles of the control plane and the managers, from fleet and kro; empty takes none")
	flag.DurationVar(&e.idle, "idle", 5*time.Minute, "how long to observe the fleet at rest")
	flag.DurationVar(&e.flood, "flood", 10*time.Minute, "how long to load a recorder with events")
	flag.IntVar(&e.lensWrites, "lens-writes", 20_000, "number of writes that flood the lens; 100000 for an hour of a busy operator")
	flag.IntVar(&e.lensRuns, "lens-runs", 5, "number of runs of the fleet directly and through the lens")
	out := flag.String("out", "docs/benchmarks.md", "page to write; empty writes none")
	only := flag.String("only", "", "sections to measure, separated by commas; the others stay unchanged; empty measures all")
	flag.Parse()

	var err error
	if e.binary, err = filepath.Abs("bin/opdock-controlplane"); err != nil {
		return err
	}
	if _, err := os.Stat(e.binary); err != nil {
		return fmt.Errorf("the control plane is not built; run `make bench`, which builds it first: %w", err)
	}
	if e.work, err = os.MkdirTemp("", "opdock-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(e.work)
	// The user's named clusters are not affected.
	if err := os.Setenv("OPDOCK_HOME", filepath.Join(e.work, "home")); err != nil {
		return err
	}
	old, err := os.ReadFile("docs/benchmarks.md")
	if err != nil && !os.IsNotExist(err) {
		return err
	}

	var order []string
	measured := map[string]string{}
	for _, section := range sections {
		order = append(order, section.name)
		if *only != "" && !slices.Contains(strings.Split(*only, ","), section.name) {
			continue
		}
		text, err := section.measure(ctx, e)
		if err != nil {
			return fmt.Errorf("%s: %w", section.name, err)
		}
		if text == "" {
			continue // not measurable here; the section printed the reason
		}
		fmt.Print("\n", text)
		measured[section.name] = text
	}
	if len(measured) == 0 {
		return fmt.Errorf("-only %s: no such section; choose from %s", *only, strings.Join(order, ", "))
	}
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, []byte(joinPage(string(old), order, measured)), 0o644) //nolint:gosec // a page of documentation
}

func sizesOf(sizes *[]int) func(string) error {
	return func(value string) error {
		*sizes = nil
		for part := range strings.SplitSeq(value, ",") {
			size, err := strconv.Atoi(part)
			if err != nil {
				return err
			}
			*sizes = append(*sizes, size)
		}
		return nil
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
