// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/manager"
)

// The racers of this section, by their names in its table.
const (
	floorRacer = "a plain client"
	fleetRacer = "the fleet"
)

// fleetSection measures the fleet's manager against a plain client that makes only the requests no manager can avoid.
func fleetSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	program := filepath.Join(e.work, "manager")
	if err := buildManager(ctx, program); err != nil {
		return "", err
	}
	app, err := recordApplication(ctx, e, program)
	if err != nil {
		return "", err
	}
	var races []results
	for _, size := range e.fleetSizes {
		one, err := race(ctx, e, size, rounds(e.fleetRuns, size, slices.Max(e.fleetSizes)), []racer{{floorRacer, raceFloor(app)}, {fleetRacer, raceFleet(e, program)}})
		if err != nil {
			return "", err
		}
		races = append(races, one)
	}
	return sectionPage("fleet", "The fleet", time.Since(began), func(p printer) { writeFleet(p, races) }, fleetGoals(races)), nil
}

// rounds returns the number of rounds for a number of applications. Short runs vary more, so there are more of them.
func rounds(least, size, largest int) int { return least * min(3, largest/size) }

// raceFloor returns a racer that creates AppServices, their children and one status each with a plain client.
func raceFloor(app application) func(context.Context, *raced, *cluster.Cluster, int) error {
	return func(ctx context.Context, r *raced, c *cluster.Cluster, size int) error {
		fleetClient, err := installFleet(ctx, c)
		if err != nil {
			return err
		}
		if _, err := createWithoutManager(ctx, fleetClient, app, 1, warmUp); err != nil {
			return err
		}
		err = r.timed(ctx, c, func() (time.Duration, error) { return createWithoutManager(ctx, fleetClient, app, size, appName) })
		if err != nil {
			return err
		}
		if err := pause(ctx, restInterval); err != nil { // like metricsAtRest
			return err
		}
		return r.countServer(ctx, c)
	}
}

// raceFleet returns a racer that creates AppServices for a manager that is already running.
func raceFleet(e environment, program string) func(context.Context, *raced, *cluster.Cluster, int) error {
	return func(ctx context.Context, r *raced, c *cluster.Cluster, size int) error {
		fleetClient, err := installFleet(ctx, c)
		if err != nil {
			return err
		}
		f := &fleet{WithWatch: fleetClient, program: program, kubeconfig: c.Kubeconfig(), namespace: metav1.NamespaceDefault}
		if e.profiles != "" {
			if r.profiled, err = freeport.Address(); err != nil {
				return err
			}
			f.arguments = []string{"--pprof-bind-address", r.profiled}
		}
		return r.controlled(ctx, e, c, f, size, f.createAppServices)
	}
}

// controlled measures how long a controller takes until the applications are ready, and the resources it uses
// meanwhile.
func (r *raced) controlled(ctx context.Context, e environment, c *cluster.Cluster, f *fleet, size int,
	create func(context.Context, int, func(int) string) (time.Duration, error),
) error {
	err := f.while(ctx, e, "race", func() error {
		if _, err := create(ctx, 1, warmUp); err != nil {
			return err
		}
		before, _, err := f.metricsAtRest(ctx)
		if err != nil {
			return err
		}
		var (
			ready counts
			since time.Time
		)
		err = r.timed(ctx, c, func() (time.Duration, error) {
			took, err := create(ctx, size, appName)
			if err != nil {
				return took, err
			}
			since = time.Now()
			ready, err = f.metrics(ctx)
			return took, err
		})
		if err != nil {
			return err
		}
		after, ago, err := f.metricsAtRest(ctx)
		if err != nil {
			return err
		}
		r.late = max(0, time.Since(since)-ago)
		if err := r.countServer(ctx, c); err != nil {
			return err
		}
		r.cpu, r.writes, r.lateWrites = after.cpu-before.cpu, (after.writes-before.writes)/float64(size), after.writes-ready.writes
		r.resident, err = residentAfter(ctx, f.pid())
		return err
	})
	r.peak = f.peak
	return err
}

// warmUp names an application that exists before the clock starts, so each racer has handled one by then.
func warmUp(int) string { return "warm-up" }

func fleetGoals(races []results) (goals []goal) {
	for _, r := range races {
		against := r.against(fleetRacer, floorRacer)
		writes := r.of(fleetRacer, writesOf)
		goals = append(goals,
			goal{fmt.Sprintf("%d AppServices until Ready, against a plain client", r.size), "at most 1.10 ×", times(against), against <= 1.10},
			goal{fmt.Sprintf("writes of the manager per AppService, with %d", r.size), "at most 5", fmt.Sprintf("%.2f", writes), writes <= 5})
	}
	return goals
}

func writeFleet(p printer, races []results) {
	p("Each AppService has one pod and a Service. %d requests at a time create them. Either the fleet's manager or a plain", creators)
	p("client does the rest. The plain client makes only the requests that no manager can avoid: it creates the Deployment and the")
	p("Service, and writes the status once, when the Deployment is available. It writes the same objects as the manager,")
	p("with %d workers and the manager's client settings. Before the clock starts, each contender has handled one", manager.DefaultConcurrency)
	p("AppService, and the control plane is at rest. Each run has a new cluster on the same machine. The contenders took")
	p("turns, in more rounds if a run is short. The table shows medians; the ratio is the median of the ratios in each round.")
	p("CPU times and writes count until everything is at rest, and not only until the last AppService is ready: the manager delays")
	p("events while it has much else to write. %s\n", lateness(races))
	writeRaces(p, races, floorRacer)
}

// lateness returns what the manager wrote after the applications were ready, for each number of them.
func lateness(races []results) string {
	texts := make([]string, len(races))
	for i, r := range races {
		texts[i] = fmt.Sprintf("%.0f of the %.0f writes of the fleet's manager came after the last of %d applications was ready, within %.1f s",
			r.of(fleetRacer, lateWritesOf), r.of(fleetRacer, writesOf)*float64(r.size), r.size, r.of(fleetRacer, lateOf))
	}
	return strings.Join(texts, "; ") + "."
}

// published is how long the API server may take to publish new kinds after it established them. Without this pause,
// that work would count as work for the AppServices.
const published = 5 * time.Second

// installFleet installs the CRDs, waits until the cluster is idle and returns a client for the kinds.
func installFleet(ctx context.Context, c *cluster.Cluster) (client.WithWatch, error) {
	if err := controller.Install(ctx, c.Config(), controller.Kinds); err != nil {
		return nil, err
	}
	if err := pause(ctx, published); err != nil {
		return nil, err
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(unlimited(c.Config()), client.Options{Scheme: scheme})
}
