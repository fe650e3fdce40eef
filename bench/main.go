// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what Opdock promises about the control plane and
// writes the result to docs/benchmarks.md. All figures of a table come from one
// run on one machine, with the contenders taking turns, so that what counts is
// their ratio: the machine's mood cancels out.
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

// environment is what the sections have in common.
type environment struct {
	binary string // the control plane
	work   string // a folder that is removed in the end
	runs   int
	pods   int
	// fleetRuns is how often each size of fleet is measured, and idle how long it is watched doing nothing.
	fleetRuns            int
	fleetSizes, kroSizes []int
	idle                 time.Duration
	profiles             string // the folder for profiles; empty: none
	// flood is how long a recorder is flooded with events.
	flood time.Duration
}

// sections are the parts of the page, in their order.
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
	{"scaffold", scaffoldSection},
	{"dev", devSection},
	{"page", pageSection},
}

func run(ctx context.Context) error {
	ctrllog.SetLogger(logr.Discard()) // envtest's; it complains where there is none
	var e environment
	flag.IntVar(&e.runs, "runs", 7, "how often each contender runs")
	flag.IntVar(&e.pods, "pods", 1000, "how many pods the load test creates")
	e.fleetSizes, e.kroSizes = []int{100, 500, 1000}, []int{200, 1000}
	flag.Func("fleet-sizes", "how many AppServices the fleets have, separated by commas (default 100,500,1000)", sizesOf(&e.fleetSizes))
	flag.Func("kro-sizes", "how many applications the fleet and kro are compared with, separated by commas (default 200,1000)", sizesOf(&e.kroSizes))
	flag.IntVar(&e.fleetRuns, "fleet-runs", 3, "how often each number of AppServices, or of applications of kro, is created")
	flag.StringVar(&e.profiles, "profiles", "", "an existing folder for profiles of the control plane and the managers, by fleet and kro; empty: none are taken")
	flag.DurationVar(&e.idle, "idle", 5*time.Minute, "how long the fleet is watched doing nothing")
	flag.DurationVar(&e.flood, "flood", 10*time.Minute, "how long a recorder of reconciles is flooded with events")
	out := flag.String("out", "docs/benchmarks.md", "the page to write; empty: none")
	only := flag.String("only", "", "the sections to measure, separated by commas; the others stay on the page as they are; empty: all")
	flag.Parse()

	var err error
	if e.binary, err = filepath.Abs("bin/opdock-controlplane"); err != nil {
		return err
	}
	if _, err := os.Stat(e.binary); err != nil {
		return fmt.Errorf("run it by `make bench`, which builds the control plane first: %w", err)
	}
	if e.work, err = os.MkdirTemp("", "opdock-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(e.work)
	// Named clusters of the benchmark stay out of the user's.
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
			continue // it could not be measured here, and has said why
		}
		fmt.Print("\n", text)
		measured[section.name] = text
	}
	if len(measured) == 0 {
		return fmt.Errorf("-only %s: there are the sections %s", *only, strings.Join(order, ", "))
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
