// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/opdock/opdock/cluster"
)

// report is everything that stands on the page.
type report struct {
	machine string
	took    time.Duration
	runs    int
	startup []timing
	pods    int
	load    loadResult
	rebuild time.Duration
}

// goal is a figure that Opdock promises, and whether this run kept it.
type goal struct {
	what, wanted, measured string
	kept                   bool
}

func (r report) median(key string) time.Duration {
	for _, t := range r.startup {
		if t.key == key {
			return t.median()
		}
	}
	return 0
}

func (r report) goals() []goal {
	cold, again, envtest := r.median(coldStart), r.median(restart), r.median(envtestStart)
	toEnvtest, toCold := ratio(cold, envtest), ratio(again, cold)
	return []goal{
		{"new cluster, to a Deployment Available, against envtest's API server alone", "at most 0.40 ×", fmt.Sprintf("%.2f ×", toEnvtest), toEnvtest <= 0.4},
		{"new cluster, to a Deployment Available, on a quiet machine of two cores", "under 1 s", ms(cold), cold < time.Second},
		{"restart on existing state against a new cluster", "at most 0.50 ×", fmt.Sprintf("%.2f ×", toCold), toCold <= 0.5},
		{"`make build` with nothing changed", "under 3 s", ms(r.rebuild), r.rebuild < 3*time.Second},
	}
}

func writePage(w io.Writer, r report) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("# Benchmarks\n")
	p("Written by `make bench`; do not edit. Kubernetes %s, %s, the run took %s. What counts are the", cluster.KubernetesVersion, r.machine, r.took.Round(time.Second))
	p("ratios: all contenders took turns on the same machine.\n")

	p("## Start-up\n")
	p("From before the first process exists, median of %d interleaved runs.\n", r.runs)
	p("| contender | until | median | fastest | slowest | against envtest |")
	p("|---|---|---:|---:|---:|---:|")
	base := r.median(envtestStart)
	for _, t := range r.startup {
		p("| %s | %s | %s | %s | %s | %.2f × |", t.name, t.until, ms(t.median()), ms(slices.Min(t.times)), ms(slices.Max(t.times)), ratio(t.median(), base))
	}

	p("\n## Load and memory\n")
	p("One Deployment of %d pods on one simulated node.\n", r.pods)
	p("| | |")
	p("|---|---:|")
	p("| created to all Ready | %s |", ms(r.load.ready))
	p("| the same with kube-controller-manager's default client limits (%d requests a second) | %s, %.1f × as long |", upstreamQPS, ms(r.load.readyLimited), ratio(r.load.readyLimited, r.load.ready))
	p("| resident memory, idle | %d MB |", r.load.idle/1e6)
	p("| resident memory with %d pods | %d MB |", r.pods, r.load.loaded/1e6)
	p("| `make build` with nothing changed | %s |", ms(r.rebuild))

	p("\n## Promised and measured\n")
	p("| | promised | measured | |")
	p("|---|---|---:|---|")
	for _, g := range r.goals() {
		kept := "kept"
		if !g.kept {
			kept = "**missed**"
		}
		p("| %s | %s | %s | %s |", g.what, g.wanted, g.measured, kept)
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

func describeMachine() string {
	return fmt.Sprintf("%s/%s with %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}
