// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what Opdock promises about the control plane and
// writes the result to docs/benchmarks.md. All figures of a table come from one
// run on one machine, with the contenders taking turns, so that what counts is
// their ratio: the machine's mood cancels out.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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

func run(ctx context.Context) error {
	ctrllog.SetLogger(logr.Discard()) // envtest's; it complains where there is none
	runs := flag.Int("runs", 7, "how often each contender starts")
	pods := flag.Int("pods", 1000, "how many pods the load test creates")
	out := flag.String("out", "docs/benchmarks.md", "the page to write; empty: none")
	flag.Parse()

	binary, err := filepath.Abs("bin/opdock-controlplane")
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil {
		return fmt.Errorf("run it by `make bench`, which builds the control plane first: %w", err)
	}
	work, err := os.MkdirTemp("", "opdock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	// Named clusters of the benchmark stay out of the user's.
	if err := os.Setenv("OPDOCK_HOME", filepath.Join(work, "home")); err != nil {
		return err
	}

	say("Building the upstream programs to compare with, from the same source")
	programs, err := buildUpstream(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	startup, err := measureStartup(ctx, binary, programs, work, *runs)
	if err != nil {
		return fmt.Errorf("start-up: %w", err)
	}
	load, err := measureLoad(ctx, binary, work, *pods)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	rebuild, err := measureRebuild(ctx)
	if err != nil {
		return fmt.Errorf("second build: %w", err)
	}

	var page bytes.Buffer
	writePage(&page, report{
		machine: describeMachine(), took: time.Since(began),
		runs: *runs, startup: startup, pods: *pods, load: load, rebuild: rebuild,
	})
	fmt.Print("\n", page.String())
	if *out == "" {
		return nil
	}
	return os.WriteFile(*out, page.Bytes(), 0o644) //nolint:gosec // a page of documentation
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
