// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// devLimit is how many times as long as go build it may take from saving a file until the operator reconciles.
const devLimit = 1.5

// devSection measures how long opdock dev takes from saving a file until the operator reconciles, against the build
// that it cannot avoid.
func devSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	d, err := newDevBench(ctx, filepath.Join(e.work, "dev"), e.binary)
	if err != nil {
		return "", err
	}
	defer d.stop()
	var controllerBuild, controllerDev, typeGenerate, typeBuild, typeDev []time.Duration
	measure := func(times *[]time.Duration, what string, run func() (time.Duration, error)) error {
		took, err := run()
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		say("  %-45s %6d ms", what, took.Milliseconds())
		*times = append(*times, took)
		return nil
	}
	for round := range e.runs {
		say("Dev, round %d of %d", round+1, e.runs)
		steps := []struct {
			times *[]time.Duration
			what  string
			run   func() (time.Duration, error)
		}{
			{&controllerBuild, "controller changed: go build", func() (time.Duration, error) { return d.build(ctx, devController, round) }},
			{&controllerDev, "controller changed: opdock dev", func() (time.Duration, error) { return d.reload(ctx, devController, round) }},
			{&typeGenerate, "type changed: opdock generate", func() (time.Duration, error) { return d.generate(ctx, devTypes, round) }},
			{&typeBuild, "type changed: go build", func() (time.Duration, error) { return d.build(ctx, "", round) }},
			{&typeDev, "type changed: opdock dev", func() (time.Duration, error) { return d.reload(ctx, devTypes, round) }},
		}
		for _, step := range steps {
			if err := measure(step.times, step.what, step.run); err != nil {
				return "", err
			}
		}
	}
	controllerRatio := ratio(median(controllerDev), median(controllerBuild))
	// A changed type adds generating. The rest is the same work.
	typeLimit := median(typeGenerate) + time.Duration(devLimit*float64(median(typeBuild)))
	return sectionPage("dev", "Developing", time.Since(began), func(p printer) {
		p("The time runs from saving a file until the new process reconciles, as the status line of `opdock dev` reports it. It is compared")
		p("with running the same commands by hand, in a copy of the project with the same change. They took turns in %d rounds.\n", e.runs)
		p("| change | | median | fastest | slowest |")
		p("|---|---|---:|---:|---:|")
		row := func(change, what string, times []time.Duration) {
			p("| %s | %s | %s | %s | %s |", change, what, ms(median(times)), ms(fastest(times)), ms(slowest(times)))
		}
		row("controller", "`go build`, alone", controllerBuild)
		row("", "`opdock dev`, until it reconciles", controllerDev)
		row("type", "`opdock generate`, alone", typeGenerate)
		row("", "then `go build`, alone", typeBuild)
		row("", "`opdock dev`, until it reconciles", typeDev)
	}, []goal{
		{"from saving a controller until it reconciles", fmt.Sprintf("at most %.1f × go build", devLimit), times(controllerRatio), controllerRatio <= devLimit},
		{
			"from saving a type until its controller reconciles", fmt.Sprintf("at most generate + %.1f × go build (%s)", devLimit, ms(typeLimit)),
			ms(median(typeDev)), median(typeDev) <= typeLimit,
		},
	}), nil
}
