// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command conformance runs upstream's Conformance specs on an embedded control plane, and writes docs/conformance.md.
// `make conformance` runs it in the root of the repository.
//
// The module upstream compiles upstream's specs. left-out.yaml lists the specs that do not run, with the reasons, and
// results.json holds the results of the last run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/lens"
)

const (
	here        = "test/conformance"
	leftOutPath = here + "/left-out.yaml"
	resultsPath = here + "/results.json"
	pagePath    = "docs/conformance.md"
	// nodes is the number of simulated nodes. Specs that spread or evict pods need several.
	nodes = 3
)

// groups are the special interest groups whose specs test the control plane.
var groups = []string{"api-machinery", "apps", "architecture", "auth", "cli", "instrumentation", "scheduling"}

type options struct {
	lens, list, page    bool
	procs               int
	focus               string
	binary, e2e, ginkgo string
	output              string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.BoolVar(&o.lens, "lens", false, "send all requests of the specs through the lens")
	flags.BoolVar(&o.list, "list", false, "list the specs and whether they are left out, and run none")
	flags.BoolVar(&o.page, "page", false, "write the page from the last results, and run no specs; use it after a change of the list of left out specs")
	flags.IntVar(&o.procs, "procs", max(8, 2*runtime.NumCPU()), "how many specs run at the same time; most of them wait")
	flags.StringVar(&o.focus, "focus", "", "run only specs whose name matches this regular expression; results are not kept")
	flags.StringVar(&o.binary, "controlplane", "bin/opdock-controlplane", "path of the control plane")
	flags.StringVar(&o.e2e, "e2e", "bin/e2e.test", "path of upstream's specs")
	flags.StringVar(&o.ginkgo, "ginkgo", "bin/ginkgo", "path of Ginkgo")
	flags.StringVar(&o.output, "output", "dist/conformance", "directory for the log and the report of Ginkgo")
	if err := flags.Parse(args); err != nil {
		return err
	}
	focus, err := regexp.Compile(o.focus)
	if err != nil {
		return fmt.Errorf("--focus: %w", err)
	}
	exclusions, err := readLeftOut(leftOutPath)
	if err != nil {
		return err
	}
	if o.page {
		return rewrite(exclusions)
	}
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}
	specs, err := o.allSpecs(ctx)
	if err != nil {
		return err
	}
	chosen, err := choose(specs, exclusions)
	if err != nil {
		return err
	}
	if o.list {
		for _, s := range specs {
			fmt.Printf("%-9s %s\n", chosen.mark(s.Name), s.Name)
		}
		return nil
	}
	return o.runSpecs(ctx, chosen, exclusions, focus)
}

// runSpecs starts a cluster, runs the chosen specs on it and saves the results.
func (o *options) runSpecs(ctx context.Context, chosen selection, exclusions []exclusion, focus *regexp.Regexp) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Binary: o.binary, Nodes: nodes})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	kubernetes, err := sameVersion(c.Config(), o.e2e)
	if err != nil {
		return err
	}
	kubeconfig := c.Kubeconfig()
	if o.lens {
		var end func() error
		if kubeconfig, end, err = throughLens(ctx, c); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	var wanted []string
	for _, name := range chosen.run {
		if focus.MatchString(name) {
			wanted = append(wanted, name)
		}
	}
	fmt.Printf("Running %d of %d specs%s, %d at a time. The log is %s.\n", len(wanted), len(chosen.run)+len(chosen.leftOut),
		map[bool]string{true: " through the lens"}[o.lens], o.procs, o.path("log"))
	began := time.Now()
	ran, err := o.ginkgoRun(ctx, c, kubeconfig, wanted)
	if err != nil {
		return err
	}
	took := time.Since(began)
	if err := sameSpecs(wanted, ran); err != nil {
		return err
	}
	if o.focus == "" {
		all, err := readResults(resultsPath)
		if err != nil {
			return err
		}
		all[o.way()] = result{Kubernetes: kubernetes, Seconds: int(took.Seconds()), Procs: o.procs, Specs: chosen.with(ran)}
		if err := keep(all, exclusions); err != nil {
			return err
		}
	}
	return verdict(ran, took)
}

// rewrite applies a changed list of left out specs to the last results. It cannot add specs that did not run.
func rewrite(exclusions []exclusion) error {
	all, err := readResults(resultsPath)
	if err != nil {
		return err
	}
	for way, run := range all {
		chosen, err := choose(run.Specs, exclusions)
		if err != nil {
			return err
		}
		for i, s := range run.Specs {
			_, out := chosen.leftOut[s.Name]
			switch {
			case out:
				run.Specs[i] = spec{Name: s.Name, State: leftOut}
			case s.State == leftOut:
				return fmt.Errorf("%s: %s was left out in the last run; run make conformance", way, s.Name)
			}
		}
	}
	return keep(all, exclusions)
}

func keep(all results, exclusions []exclusion) error {
	text, err := page(all, exclusions)
	if err != nil {
		return err
	}
	if err := all.write(resultsPath); err != nil {
		return err
	}
	return os.WriteFile(pagePath, []byte(text), 0o644)
}

// throughLens starts a lens in front of a cluster and writes a kubeconfig that connects through it.
func throughLens(ctx context.Context, c *cluster.Cluster) (kubeconfig string, end func() error, err error) {
	proxy, err := lens.Start(ctx, lens.Options{Upstream: c.Config(), Near: true})
	if err != nil {
		return "", nil, err
	}
	data, err := proxy.Kubeconfig()
	if err != nil {
		return "", nil, errors.Join(err, proxy.Close())
	}
	kubeconfig = filepath.Join(c.Dir(), "lens.kubeconfig") // deleted with the cluster
	if err := os.WriteFile(kubeconfig, data, 0o600); err != nil {
		return "", nil, errors.Join(err, proxy.Close())
	}
	return kubeconfig, proxy.Close, nil
}

// verdict prints the failed specs, and returns an error if there are any.
func verdict(ran []spec, took time.Duration) error {
	failed := 0
	for _, s := range ran {
		if s.State != passed {
			failed++
			fmt.Printf("FAILED: %s\n    %s\n", s.Name, strings.ReplaceAll(s.Failure, "\n", "\n    "))
		}
	}
	fmt.Printf("%d passed, %d failed in %s.\n", len(ran)-failed, failed, took.Round(time.Second))
	if failed > 0 {
		return fmt.Errorf("%d specs failed", failed)
	}
	return nil
}

// way returns how requests reach the API server.
func (o *options) way() string {
	if o.lens {
		return "lens"
	}
	return "direct"
}

func (o *options) path(ending string) string { return filepath.Join(o.output, o.way()+"."+ending) }
