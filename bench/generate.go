// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// generateConfig makes opdock generate the same files as the upstream tools.
const generateConfig = `generate:
  paths: [./api/...]
  yamlHeaderFile: hack/boilerplate.yaml.txt
  deepcopy: {tool: controller-gen}
  client: {applyPackages: [api/shared/v1]}
`

// changedFile is the source file that changes between two runs.
const changedFile = "api/collector/v1/collector_types.go"

// generateResult holds the measurements of one way to generate.
type generateResult struct {
	name, what string
	times      []time.Duration
	memory     uint64 // peak of the largest process, in bytes
}

// generateSection measures opdock generate against the tools that it replaces.
func generateSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	g, err := newGenerateBench(ctx, filepath.Join(e.work, "generate"))
	if err != nil {
		return "", err
	}
	if err := g.compare(ctx); err != nil { // also warms the file cache
		return "", err
	}
	upstream := &generateResult{name: "upstream tools, one after the other", what: "everything"}
	all := &generateResult{name: "opdock generate --force", what: "everything"}
	changed := &generateResult{name: "opdock generate", what: "one type changed"}
	nothing := &generateResult{name: "opdock generate", what: "nothing changed"}
	for round := range e.runs {
		say("Generate, round %d of %d", round+1, e.runs)
		if err := g.time(ctx, upstream, g.runUpstream); err != nil {
			return "", err
		}
		if err := g.time(ctx, all, g.runOurs("--force")); err != nil {
			return "", err
		}
		if err := g.changeType(round); err != nil {
			return "", err
		}
		for _, result := range []*generateResult{changed, nothing} {
			if err := g.time(ctx, result, g.runOurs()); err != nil {
				return "", err
			}
		}
	}
	base := median(upstream.times)
	return sectionPage("generate", "Generating", time.Since(began), func(p printer) {
		p("The input is all kinds of this repository. The output is deep copies, CRDs, a clientset, listers, informers, apply")
		p("configurations and OpenAPI definitions. The upstream tools are built beforehand, and run with the arguments that")
		p("kubebuilder's Makefile and `kube_codegen.sh` use. The benchmark first checks that both write the same files. They took")
		p("turns in %d rounds.\n", e.runs)
		p("| | what | median | fastest | slowest | upstream takes | peak memory |")
		p("|---|---|---:|---:|---:|---:|---:|")
		for _, r := range []*generateResult{upstream, all, changed, nothing} {
			p("| %s | %s | %s | %s | %s | %.1f × as long | %d MB |", r.name, r.what, ms(median(r.times)), ms(fastest(r.times)), ms(slowest(r.times)),
				ratio(base, median(r.times)), r.memory/1e6)
		}
	}, []goal{
		atLeast("everything, against the upstream tools", 4, ratio(base, median(all.times))),
		atLeast("one type changed, against the upstream tools", 5, ratio(base, median(changed.times))),
		atLeast("nothing changed, against the upstream tools", 50, ratio(base, median(nothing.times))),
		{
			"peak memory, against the largest upstream tool", "at most 1.50 ×", times(float64(all.memory) / float64(upstream.memory)),
			float64(all.memory) <= 1.5*float64(upstream.memory),
		},
	}), nil
}

func atLeast(what string, target, measured float64) goal {
	return goal{what, fmt.Sprintf("at least %.0f × faster", target), fmt.Sprintf("%.1f × faster", measured), measured >= target}
}

// time runs one way to generate, and stores its duration and the peak memory of its largest process.
func (g *generateBench) time(ctx context.Context, result *generateResult, run func(context.Context) (uint64, error)) error {
	began := time.Now()
	memory, err := run(ctx)
	if err != nil {
		return err
	}
	took := time.Since(began)
	say("  %-35s %-22s %6d ms", result.name, result.what, took.Milliseconds())
	result.times = append(result.times, took)
	result.memory = max(result.memory, memory)
	return nil
}

// changeType adds a type whose field has another name in each round.
func (g *generateBench) changeType(round int) error {
	file := filepath.Join(g.ours, changedFile)
	content, err := os.ReadFile(filepath.Join(g.upstream, changedFile))
	if err != nil {
		return err
	}
	addition := fmt.Sprintf("\n// Added is new.\ntype Added struct {\n\t// Names are new.\n\tNames%d []string `json:\"names\"`\n}\n", round)
	return errors.Join(err, os.WriteFile(file, append(content, addition...), 0o600))
}
