// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/opdock/opdock/cluster"
)

// racer is one of several ways to get applications running, each on a new cluster.
type racer struct {
	name string // in the table
	// run creates applications on a new cluster. It starts the clock when all preparations are done.
	run func(ctx context.Context, r *raced, c *cluster.Cluster, size int) error
}

// raced holds the measurements of one run of a racer.
type raced struct {
	profiles string // the prefix of the files for profiles; empty: none
	profiled string // where the manager serves profiles; empty: nowhere

	took time.Duration // from the first request until all are ready
	// serverBefore and server are the CPU time of the control plane, with all its controllers: until the clock starts, and
	// after that until it is at rest.
	serverBefore, server time.Duration
	// These fields describe the controller process, if there is one: how long after that time it sent its last write, its
	// CPU time until then, resident bytes at the end and at the peak, and write requests per application, of which
	// lateWrites came after that time.
	late, cpu          time.Duration
	resident, peak     uint64
	writes, lateWrites float64
}

// results holds the runs of each racer for one number of applications, in the order of the racers.
type results struct {
	size   int
	racers []racer
	runs   [][]raced
}

// race lets the racers take turns. Another racer begins each round, so none of them always follows the same one.
func race(ctx context.Context, e environment, size, rounds int, racers []racer) (results, error) {
	all := results{size: size, racers: racers, runs: make([][]raced, len(racers))}
	for round := range rounds {
		for turn := range racers {
			i := (round + turn) % len(racers)
			var one raced
			if e.profiles != "" {
				one.profiles = filepath.Join(e.profiles, fmt.Sprintf("%d-%d-%s", size, round, strings.ReplaceAll(racers[i].name, " ", "-")))
			}
			name := fmt.Sprintf("race-%d-%d-%d", size, round, i)
			err := withCluster(ctx, cluster.Options{Name: name, Binary: e.binary}, func(c *cluster.Cluster, _ int) error {
				return racers[i].run(ctx, &one, c, size)
			})
			if err != nil {
				return all, fmt.Errorf("%d applications, %s: %w", size, racers[i].name, err)
			}
			all.runs[i] = append(all.runs[i], one)
			say("%d applications, round %d of %d, %s: %s, control plane %s, controller %s, %d MB (peak %d MB), %.2f writes each",
				size, round+1, rounds, racers[i].name, ms(one.took), ms(one.server), ms(one.cpu), one.resident/1e6, one.peak/1e6, one.writes)
		}
	}
	return all, nil
}

// timed runs do, and measures its duration and the CPU time of the control plane.
func (r *raced) timed(ctx context.Context, c *cluster.Cluster, do func() (time.Duration, error)) error {
	var err error
	if r.serverBefore, err = serverAtRest(ctx, c); err != nil {
		return err
	}
	profiled := r.profile(ctx, c)
	if r.took, err = do(); err != nil {
		return err
	}
	if err := profiled(); err != nil {
		return err
	}
	return r.countServer(ctx, c)
}

// countServer measures the CPU time that the control plane has used since the clock started.
func (r *raced) countServer(ctx context.Context, c *cluster.Cluster) error {
	now, err := serverCPU(ctx, c)
	r.server = now - r.serverBefore
	return err
}

// serverAtRest waits until the control plane has nothing left to do, so that what it still does for its own start, for
// new CRDs and for a manager that has just started is not measured. It returns the CPU time of the control plane. On a slow
// machine, reading its metrics alone takes a tenth of the interval, so they are read twice, and one reading is subtracted.
func serverAtRest(ctx context.Context, c *cluster.Cluster) (time.Duration, error) {
	last, err := serverCPU(ctx, c)
	if err != nil {
		return 0, err
	}
	return last, eventually(ctx, "the control plane does not come to rest", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(restInterval):
		}
		before := last
		read, err := serverCPU(ctx, c)
		if err != nil {
			return err
		}
		if last, err = serverCPU(ctx, c); err != nil {
			return err
		}
		if used := read - before - (last - read); used > restInterval/10 {
			return fmt.Errorf("it has used %s of CPU time in %s", used, restInterval)
		}
		return nil
	})
}

// restInterval is how long the control plane must be at rest.
const restInterval = time.Second

// serverCPU returns the CPU time of the control plane since its start, from its own metrics.
func serverCPU(ctx context.Context, c *cluster.Cluster) (time.Duration, error) {
	server, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return 0, err
	}
	text, err := server.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of the control plane: %w", err)
	}
	const name = "process_cpu_seconds_total"
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+" ") {
			value, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(line, name)), 64)
			return seconds(value), err
		}
	}
	return 0, fmt.Errorf("the control plane does not serve the metric %s", name)
}

// of returns the median of a value over the runs of a racer.
func (r results) of(name string, what func(raced) float64) float64 {
	return middle(r.values(name, what))
}

// against returns how much longer a racer took than another one: the median of the ratios in each round. Runs of one round
// follow each other, so a machine that is slow for some minutes hardly changes their ratio.
func (r results) against(name, base string) float64 {
	ratios := r.values(name, tookOf)
	for round, took := range r.values(base, tookOf) {
		ratios[round] /= took
	}
	return middle(ratios)
}

// values returns a value of each run of a racer, by round.
func (r results) values(name string, what func(raced) float64) []float64 {
	i := slices.IndexFunc(r.racers, func(one racer) bool { return one.name == name })
	values := make([]float64, len(r.runs[i]))
	for j, run := range r.runs[i] {
		values[j] = what(run)
	}
	return values
}

func middle(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	if half := len(values) / 2; len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[len(values)/2]
}

func tookOf(r raced) float64       { return r.took.Seconds() }
func serverOf(r raced) float64     { return r.server.Seconds() }
func cpuOfRace(r raced) float64    { return r.cpu.Seconds() }
func residentOf(r raced) float64   { return float64(r.resident) / 1e6 }
func peakMemoryOf(r raced) float64 { return float64(r.peak) / 1e6 }
func lateOf(r raced) float64       { return r.late.Seconds() }
func lateWritesOf(r raced) float64 { return r.lateWrites }
func writesOf(r raced) float64     { return r.writes }

// writeRaces writes a table of all races, with the time of each racer against the base.
func writeRaces(p printer, all []results, base string) {
	p("| applications | | rounds | until Ready, median | fastest | slowest | against %s | CPU time of the control plane | CPU time of the controller | its memory afterwards | its peak memory | its writes per application |", base)
	p("|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, r := range all {
		for i, one := range r.racers {
			fastest := slices.MinFunc(r.runs[i], func(a, b raced) int { return int(a.took - b.took) })
			slowest := slices.MaxFunc(r.runs[i], func(a, b raced) int { return int(a.took - b.took) })
			controller := "| | | |"
			if r.of(one.name, residentOf) > 0 {
				controller = fmt.Sprintf("%.2f s | %.0f MB | %.0f MB | %.2f |", r.of(one.name, cpuOfRace), r.of(one.name, residentOf), r.of(one.name, peakMemoryOf), r.of(one.name, writesOf))
			}
			p("| %d | %s | %d | %.1f s | %.1f s | %.1f s | %s | %.1f s | %s", r.size, one.name, len(r.runs[i]), r.of(one.name, tookOf), fastest.took.Seconds(), slowest.took.Seconds(),
				times(r.against(one.name, base)), r.of(one.name, serverOf), controller)
		}
	}
}
