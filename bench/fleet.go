// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/controller"
)

// fleetGoal is the number of AppServices that the promise is about; other numbers show how cost grows.
const fleetGoal = 500

// fleetResult is what a number of AppServices costs.
type fleetResult struct {
	size          int
	direct, fleet []time.Duration // to Available, and to Ready
	least         []time.Duration // to Ready without a manager, by the requests that none can do without
	writes        float64         // of the manager, per AppService, until Ready
}

func (r fleetResult) ratio() float64 { return ratio(median(r.fleet), median(r.direct)) }

// quietResult is what a fleet of many objects costs when nothing happens, and when its manager starts anew.
type quietResult struct {
	size          int
	idle          time.Duration
	idleWrites    float64
	restart       time.Duration
	restartWrites float64
	empty, full   uint64 // resident bytes of the manager
}

// fleetSection measures the fleet's manager against a client that creates the same objects itself.
func fleetSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	program := filepath.Join(e.work, "manager")
	if err := goBuild(ctx, program, "./cmd/manager"); err != nil {
		return "", err
	}
	var results []fleetResult
	for _, size := range e.fleetSizes {
		runs := 1
		if size == fleetGoal {
			runs = e.fleetRuns
		}
		result, err := measureFleet(ctx, e, program, size, runs)
		if err != nil {
			return "", err
		}
		results = append(results, result)
	}
	quiet, err := measureQuiet(ctx, e, program, slices.Max(e.fleetSizes))
	if err != nil {
		return "", err
	}
	changes, err := measureChanges(ctx, e, program)
	if err != nil {
		return "", err
	}
	return sectionPage("fleet", "The fleet", time.Since(began), func(p printer) {
		writeFleet(p, results)
		writeQuiet(p, quiet)
		writeChanges(p, changes)
	}, fleetGoals(results, quiet, changes)), nil
}

func fleetGoals(results []fleetResult, quiet quietResult, changes []change) []goal {
	var goals []goal
	for _, r := range results {
		if r.size == fleetGoal {
			goals = append(goals, goal{
				fmt.Sprintf("%d AppServices to Ready against creating their Deployments and Services directly", r.size),
				"at most 1.15 ×", times(r.ratio()), r.ratio() <= 1.15,
			})
		}
		goals = append(goals, goal{fmt.Sprintf("writes by the manager per AppService until Ready, with %d", r.size), "at most 5", fmt.Sprintf("%.2f", r.writes), r.writes <= 5})
	}
	goals = append(goals,
		goal{fmt.Sprintf("writes in %s of quiet with %d AppServices", quiet.idle, quiet.size), "0", fmt.Sprintf("%.0f", quiet.idleWrites), quiet.idleWrites == 0},
		goal{fmt.Sprintf("writes after a restart with %d AppServices", quiet.size), "0", fmt.Sprintf("%.0f", quiet.restartWrites), quiet.restartWrites == 0})
	more := 0
	for _, c := range changes {
		if c.reconciles > float64(c.document) {
			more++
		}
	}
	return append(goals, goal{"changes that cause more reconciles than the document counted", "0", strconv.Itoa(more), more == 0})
}

func writeFleet(p printer, results []fleetResult) {
	p("AppServices of one pod each, with a Service, created by %d workers; directly created are the same Deployments and", creators)
	p("Services, in a cluster that knows the kinds as well. All share the machine with the cluster itself. The column in between is what no manager can do without, done")
	p("by the same plain client: the AppService is created as well, and its status written once, when the Deployment is available.\n")
	p("| AppServices | directly, until Available | without a manager, until Ready | by the fleet, until Ready | writes by the manager for each |")
	p("|---:|---:|---:|---:|---:|")
	for _, r := range results {
		p("| %d | %s | %s (%s) | %s (%s) | %.2f |", r.size, ms(median(r.direct)), ms(median(r.least)), times(ratio(median(r.least), median(r.direct))),
			ms(median(r.fleet)), times(r.ratio()), r.writes)
	}
	for _, r := range results {
		if len(r.fleet) > 1 {
			p("\nWith %d, each was run %d times in turn, and the median counts.", r.size, len(r.fleet))
		}
	}
}

func writeQuiet(p printer, q quietResult) {
	p("\n| with %d AppServices | |", q.size)
	p("|---|---:|")
	p("| writes in %s of quiet | %.0f |", q.idle, q.idleWrites)
	p("| restart of the manager: caches filled and every object looked at after | %s |", ms(q.restart))
	p("| writes of that restart | %.0f |", q.restartWrites)
	p("| resident memory of the manager, before and with them | %d MB, %d MB |", q.empty/1e6, q.full/1e6)
}

// measureFleet takes turns between the two ways, each on a cluster of its own.
func measureFleet(ctx context.Context, e environment, program string, size, runs int) (fleetResult, error) {
	result := fleetResult{size: size}
	for run := range runs {
		name := fmt.Sprintf("fleet-%d-%d", size, run)
		err := withCluster(ctx, cluster.Options{Name: name + "-direct", Binary: e.binary}, func(c *cluster.Cluster, _ int) error {
			// The kinds are known there as well, so that all three ways have the same cluster under them.
			if _, err := installFleet(ctx, c); err != nil {
				return err
			}
			took, err := createDirectly(ctx, c.Config(), size)
			result.direct = append(result.direct, took)
			return err
		})
		if err != nil {
			return result, fmt.Errorf("creating %d directly: %w", size, err)
		}
		err = withCluster(ctx, cluster.Options{Name: name + "-least", Binary: e.binary}, func(c *cluster.Cluster, _ int) error {
			fleetClient, err := installFleet(ctx, c)
			if err != nil {
				return err
			}
			took, err := createWithoutManager(ctx, fleetClient, size)
			result.least = append(result.least, took)
			return err
		})
		if err != nil {
			return result, fmt.Errorf("creating %d without a manager: %w", size, err)
		}
		err = withFleet(ctx, e, program, name, func(f *fleet) error {
			before, err := f.metrics(ctx)
			if err != nil {
				return err
			}
			took, err := f.createAppServices(ctx, size)
			if err != nil {
				return err
			}
			after, err := f.metrics(ctx)
			result.fleet = append(result.fleet, took)
			result.writes = max(result.writes, (after.writes-before.writes)/float64(size))
			return err
		})
		if err != nil {
			return result, fmt.Errorf("%d AppServices: %w", size, err)
		}
		say("Fleet of %d, round %d of %d: directly %s, without a manager %s, by the fleet %s",
			size, run+1, runs, ms(result.direct[run]), ms(result.least[run]), ms(result.fleet[run]))
	}
	return result, nil
}

func measureQuiet(ctx context.Context, e environment, program string, size int) (quietResult, error) {
	result := quietResult{size: size, idle: e.idle}
	return result, withFleet(ctx, e, program, "fleet-quiet", func(f *fleet) error {
		var err error
		if result.empty, err = residentAfter(ctx, f.pid()); err != nil {
			return err
		}
		if _, err := f.createAppServices(ctx, size); err != nil {
			return err
		}
		say("Fleet of %d: %s of quiet", size, e.idle)
		if result.full, err = residentAfter(ctx, f.pid()); err != nil {
			return err
		}
		before, err := f.metrics(ctx)
		if err != nil {
			return err
		}
		select {
		case <-time.After(e.idle):
		case <-ctx.Done():
			return ctx.Err()
		}
		after, err := f.metrics(ctx)
		if err != nil {
			return err
		}
		result.idleWrites = after.writes - before.writes
		if err := f.stop(); err != nil {
			return err
		}
		began := time.Now()
		if err := f.start(ctx); err != nil {
			return err
		}
		for {
			now, err := f.metrics(ctx)
			if err != nil {
				return err
			}
			if now.reconciles >= float64(size) {
				result.restart, result.restartWrites = time.Since(began), now.writes
				return nil
			}
		}
	})
}

// published is how long the API server may go on publishing new kinds after it has established them. What it does then
// would otherwise be counted for the AppServices alone.
const published = 5 * time.Second

// installFleet installs the CRDs, and returns a client that knows the kinds when the cluster has come to rest.
func installFleet(ctx context.Context, c *cluster.Cluster) (client.WithWatch, error) {
	if err := controller.Install(ctx, c.Config(), controller.Kinds); err != nil {
		return nil, err
	}
	if err := leaveAlone(ctx, published); err != nil {
		return nil, err
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(unlimited(c.Config()), client.Options{Scheme: scheme})
}
