// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/cluster"
)

// The racers of this section, by their names in its table.
const (
	directRacer  = "directly"
	throughRacer = "through the lens"
)

// lensApps is the number of AppServices that the fleet makes ready. lensLimit is how many times as long it may take
// through the lens.
const (
	lensApps  = 100
	lensLimit = 1.10
)

// lensUse is the resource usage of the lens process in one run.
type lensUse struct {
	cpu                   time.Duration // until the AppServices are ready and the manager is at rest
	before, after, atMost uint64        // resident bytes
	recording             int           // bytes
}

type lensedFleet struct {
	results
	uses []lensUse
}

func (f *lensedFleet) ratio() float64 { return f.against(throughRacer, directRacer) }

// measureLensFleet lets the fleet make AppServices ready, directly and through a lens. `opdock trace` runs the lens
// in a separate process.
func measureLensFleet(ctx context.Context, e environment, programs string) (f lensedFleet, err error) {
	f.results, err = race(ctx, e, lensApps, e.lensRuns, []racer{
		{directRacer, func(ctx context.Context, r *raced, c *cluster.Cluster, size int) error {
			return raceLens(ctx, e, r, c, size, filepath.Join(programs, "manager"), nil, nil)
		}},
		{throughRacer, func(ctx context.Context, r *raced, c *cluster.Cluster, size int) error {
			recording := filepath.Join(e.work, "fleet.jsonl")
			through := []string{filepath.Join(programs, "opdock"), "trace", "--quiet", "--as", "admin", "--name", c.Name(), "--save", recording, "--"}
			var use lensUse
			err := raceLens(ctx, e, r, c, size, filepath.Join(programs, "manager"), through, &use)
			if err != nil {
				return err
			}
			seen, err := os.ReadFile(recording)
			if err != nil {
				return err
			}
			if lines := bytes.Count(seen, []byte("\n")); float64(lines) < r.writes*float64(size) {
				return fmt.Errorf("the recording of %d AppServices has only %d lines: the manager did not connect through the lens", size, lines)
			}
			use.recording = len(seen)
			f.uses = append(f.uses, use)
			return os.Remove(recording)
		}},
	})
	return f, err
}

// raceLens measures how long a running manager takes to make AppServices ready, and the resources that the lens uses
// meanwhile.
func raceLens(ctx context.Context, e environment, r *raced, c *cluster.Cluster, size int, program string, through []string, use *lensUse) error {
	fleetClient, err := installFleet(ctx, c)
	if err != nil {
		return err
	}
	f := &fleet{WithWatch: fleetClient, program: program, kubeconfig: c.Kubeconfig(), namespace: metav1.NamespaceDefault, through: through}
	err = f.while(ctx, e, "race", func() error {
		if _, err := f.createAppServices(ctx, 1, warmUp); err != nil {
			return err
		}
		before, _, err := f.metricsAtRest(ctx)
		if err != nil {
			return err
		}
		cpu, err := use.begin(ctx, f.pid())
		if err != nil {
			return err
		}
		if err := r.timed(ctx, c, func() (time.Duration, error) { return f.createAppServices(ctx, size, appName) }); err != nil {
			return err
		}
		after, _, err := f.metricsAtRest(ctx)
		if err != nil {
			return err
		}
		err = use.end(ctx, f.pid(), cpu)
		r.cpu, r.writes = after.cpu-before.cpu, (after.writes-before.writes)/float64(size)
		return err
	})
	if use != nil {
		use.atMost = f.peak
	}
	return err
}

// begin stores the usage of the lens before the load. Without a lens it does nothing.
func (u *lensUse) begin(ctx context.Context, pid int) (cpu time.Duration, err error) {
	if u == nil {
		return 0, nil
	}
	if u.before, err = residentNow(ctx, pid); err != nil {
		return 0, err
	}
	return cpuOfProcess(pid)
}

func (u *lensUse) end(ctx context.Context, pid int, since time.Duration) (err error) {
	if u == nil {
		return nil
	}
	now, err := cpuOfProcess(pid)
	if err != nil {
		return err
	}
	u.cpu = now - since
	u.after, err = residentNow(ctx, pid)
	return err
}

// clockTick is the unit of CPU time in /proc, the same on all architectures that Go supports.
const clockTick = 10 * time.Millisecond

// cpuOfProcess returns the CPU time of a process since its start, without its child processes.
func cpuOfProcess(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if os.IsNotExist(err) {
		return 0, nil // the system does not report it
	}
	if err != nil {
		return 0, err
	}
	return parseCPU(string(content))
}

// parseCPU reads the time in user mode and in the kernel, eleven fields after PID (NAME) STATE. The name may contain
// spaces and brackets.
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	const user, kernel = 11, 12
	if len(fields) <= kernel {
		return 0, fmt.Errorf("reading the CPU time of a process: %q has too few fields", stat)
	}
	total := time.Duration(0)
	for _, field := range []string{fields[user], fields[kernel]} {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of a process: %w", err)
		}
		total += time.Duration(ticks) * clockTick
	}
	return total, nil
}

// ofUses returns the median of a value over the runs through the lens.
func (f *lensedFleet) ofUses(what func(lensUse) float64) float64 {
	values := make([]float64, len(f.uses))
	for i, use := range f.uses {
		values[i] = what(use)
	}
	return middle(values)
}

func (f *lensedFleet) write(p printer) {
	p("The fleet's manager makes %d AppServices Ready, directly and as `opdock trace --quiet -- manager`, which runs", f.size)
	p("a recording lens as a separate process. Each run has a new cluster. The contenders took turns, %d times each. CPU time counts from the", len(f.uses))
	p("first AppService until the last one is Ready, and that of the manager and the lens until the manager has sent its events, too. The")
	p("goal is for the median of the ratios in each round.\n")
	p("| %d AppServices | until Ready, median | fastest | slowest | CPU time of the control plane | of the manager | of the lens |", f.size)
	p("|---|---:|---:|---:|---:|---:|---:|")
	for i, one := range f.racers {
		least := slices.MinFunc(f.runs[i], func(a, b raced) int { return int(a.took - b.took) })
		most := slices.MaxFunc(f.runs[i], func(a, b raced) int { return int(a.took - b.took) })
		lensCPU := ""
		if one.name == throughRacer {
			lensCPU = fmt.Sprintf("%.2f s", f.ofUses(func(u lensUse) float64 { return u.cpu.Seconds() }))
		}
		p("| %s | %.2f s | %.2f s | %.2f s | %.1f s | %.2f s | %s |", one.name, f.of(one.name, tookOf), least.took.Seconds(), most.took.Seconds(),
			f.of(one.name, serverOf), f.of(one.name, cpuOfRace), lensCPU)
	}
	p("\nResident memory of the lens process (`opdock trace`): %.0f MB before the load, %.0f MB after it, %.0f MB at most. Its recording has %.1f MB.\n",
		f.ofUses(func(u lensUse) float64 { return float64(u.before) / 1e6 }), f.ofUses(func(u lensUse) float64 { return float64(u.after) / 1e6 }),
		f.ofUses(func(u lensUse) float64 { return float64(u.atMost) / 1e6 }), f.ofUses(func(u lensUse) float64 { return float64(u.recording) / 1e6 }))
}
