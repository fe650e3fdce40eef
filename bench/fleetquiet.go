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
)

// quietResult is the cost of a fleet with many objects at rest, and of restarting its manager.
type quietResult struct {
	size          int
	idle          time.Duration
	idleWrites    float64
	restart       time.Duration
	restartWrites float64
	empty, full   uint64 // resident bytes of the manager
}

// quietSection measures the writes of the fleet's manager at rest, after a restart and for single changes.
func quietSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	program := filepath.Join(e.work, "manager")
	if err := buildManager(ctx, program); err != nil {
		return "", err
	}
	quiet, err := measureQuiet(ctx, e, program, slices.Max(e.fleetSizes))
	if err != nil {
		return "", err
	}
	changes, err := measureChanges(ctx, e, program)
	if err != nil {
		return "", err
	}
	return sectionPage("quiet", "The fleet at rest, and single changes", time.Since(began), func(p printer) {
		writeQuiet(p, quiet)
		writeChanges(p, changes)
	}, quietGoals(quiet, changes)), nil
}

func quietGoals(quiet quietResult, changes []change) []goal {
	goals := []goal{
		{fmt.Sprintf("writes in %s at rest with %d AppServices", quiet.idle, quiet.size), "0", fmt.Sprintf("%.0f", quiet.idleWrites), quiet.idleWrites == 0},
		{fmt.Sprintf("writes after a restart with %d AppServices", quiet.size), "0", fmt.Sprintf("%.0f", quiet.restartWrites), quiet.restartWrites == 0},
	}
	more := 0
	for _, c := range changes {
		if c.reconciles > float64(c.document) {
			more++
		}
	}
	return append(goals, goal{"changes that cause more reconciles than the notes count", "0", strconv.Itoa(more), more == 0})
}

func writeQuiet(p printer, q quietResult) {
	p("| with %d AppServices | |", q.size)
	p("|---|---:|")
	p("| writes in %s at rest | %.0f |", q.idle, q.idleWrites)
	p("| restart of the manager, until its caches are synced and every object is reconciled | %s |", ms(q.restart))
	p("| writes after that restart | %.0f |", q.restartWrites)
	p("| resident memory of the manager, without and with them | %d MB, %d MB |", q.empty/1e6, q.full/1e6)
}

func measureQuiet(ctx context.Context, e environment, program string, size int) (quietResult, error) {
	result := quietResult{size: size, idle: e.idle}
	return result, withFleet(ctx, e, program, "fleet-quiet", func(f *fleet) error {
		var err error
		if result.empty, err = residentAfter(ctx, f.pid()); err != nil {
			return err
		}
		if _, err := f.createAppServices(ctx, size, appName); err != nil {
			return err
		}
		say("Fleet of %d: %s at rest", size, e.idle)
		if result.full, err = residentAfter(ctx, f.pid()); err != nil {
			return err
		}
		before, _, err := f.metricsAtRest(ctx)
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
				result.restart = time.Since(began)
				break
			}
		}
		// Wait for delayed status writes, which also count.
		if err := pause(ctx, settled); err != nil {
			return err
		}
		now, err := f.metrics(ctx)
		result.restartWrites = now.writes
		return err
	})
}
