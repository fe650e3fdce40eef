// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/opdock/opdock/why"
)

// whySize is the number of AppServices with which recording is compared with not recording.
const whySize = 300

// whyRun is what a manager needed for them.
type whyRun struct {
	took      time.Duration // to Ready
	reconcile time.Duration // of the reconciler, on average, which is mostly waiting
	cpu       time.Duration // of the process, from the first object on
	count     uint64        // reconciles of all kinds in that time
	resident  uint64
	summary   why.ControllerSummary // empty without a recorder
}

// cpuEach is the CPU time of the manager for each reconcile, with all that belongs to it: watches, caches, requests.
func (r whyRun) cpuEach() time.Duration { return r.cpu / time.Duration(max(1, r.count)) }

// whySection measures what it costs to record why objects are reconciled.
func whySection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	program := filepath.Join(e.work, "manager")
	if err := goBuild(ctx, program, "./cmd/manager"); err != nil {
		return "", err
	}
	var off, on []whyRun
	for round := range e.fleetRuns {
		// In turn, so that neither is always the first one.
		for _, recording := range []bool{round%2 == 1, round%2 == 0} {
			run, err := measureWhy(ctx, e, program, fmt.Sprintf("why-%d-%t", round, recording), recording)
			if err != nil {
				return "", err
			}
			say("Recording %t, round %d of %d: %s, %s of CPU time for %d reconciles, %s each", recording, round+1, e.fleetRuns, ms(run.took), ms(run.cpu), run.count, us(run.cpuEach()))
			if recording {
				on = append(on, run)
			} else {
				off = append(off, run)
			}
		}
	}
	cost := measureCost()
	flood, err := measureFlood(ctx, e.flood)
	if err != nil {
		return "", err
	}
	share := cost.share(off, on)
	return sectionPage("why", "Recording why objects are reconciled", time.Since(began), func(p printer) {
		writeWhy(p, off, on)
		writeCost(p, cost, off, on)
		writeFlood(p, flood)
	}, []goal{
		{"CPU time that recording takes, of the CPU time of the fleet's manager for a reconcile", "at most 3 %", fmt.Sprintf("%.2f %%", 100*share), share <= 0.03},
		{"an event and a reconcile with a recorder that is off, against none", "not measurable", times(cost.offRatio()), cost.offRatio() < 1.05 && cost.off.AllocsPerOp() == cost.without.AllocsPerOp()},
		{fmt.Sprintf("memory after %s of flood, against that after a tenth of it", e.flood), "at most 1.1 ×", times(flood.growth()), flood.growth() <= 1.1},
	}), nil
}

func measureWhy(ctx context.Context, e environment, program, name string, recording bool) (run whyRun, err error) {
	var arguments []string
	address := ""
	if recording {
		if address, err = freeAddress(); err != nil {
			return run, err
		}
		arguments = []string{"--why-bind-address", address}
	}
	err = withFleet(ctx, e, program, name, func(f *fleet) error {
		before, err := f.scrape(ctx)
		if err != nil {
			return err
		}
		if run.took, err = f.createAppServices(ctx, whySize); err != nil {
			return err
		}
		after, err := f.scrape(ctx)
		if err != nil {
			return err
		}
		run.cpu = cpuOf(after) - cpuOf(before)
		count, took := reconcilesOf(after, "appservice")
		run.reconcile = took / time.Duration(max(1, count))
		all, _ := reconcilesOf(after, "")
		earlier, _ := reconcilesOf(before, "")
		run.count = all - earlier
		if run.resident, err = residentAfter(ctx, f.pid()); err != nil || !recording {
			return err
		}
		run.summary, err = summaryOf(ctx, address)
		return err
	}, arguments...)
	return run, err
}

// cpuOf is the CPU time that a manager has used since it started.
func cpuOf(families map[string]*dto.MetricFamily) (used time.Duration) {
	for _, metric := range families["process_cpu_seconds_total"].GetMetric() {
		used += seconds(metric.GetCounter().GetValue())
	}
	return used
}

// reconcilesOf is how many reconciles of a controller there were, or of all, and how long they took together.
func reconcilesOf(families map[string]*dto.MetricFamily, controller string) (count uint64, took time.Duration) {
	for _, metric := range families["controller_runtime_reconcile_time_seconds"].GetMetric() {
		if controller != "" && !slices.ContainsFunc(metric.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == controller }) {
			continue
		}
		count += metric.GetHistogram().GetSampleCount()
		took += seconds(metric.GetHistogram().GetSampleSum())
	}
	return count, took
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// summaryOf asks a manager what it has counted of AppServices.
func summaryOf(ctx context.Context, address string) (of why.ControllerSummary, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/why/summary", nil)
	if err != nil {
		return of, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return of, err
	}
	defer response.Body.Close()
	var summary why.Summary
	if err := json.NewDecoder(response.Body).Decode(&summary); err != nil {
		return of, err
	}
	index := slices.IndexFunc(summary.Controllers, func(c why.ControllerSummary) bool { return c.Name == "appservice" })
	if index < 0 || summary.Controllers[index].Reconciles == 0 {
		return of, fmt.Errorf("the manager has recorded nothing: %+v", summary)
	}
	return summary.Controllers[index], nil
}

func writeWhy(p printer, off, on []whyRun) {
	p("The fleet's manager with %d AppServices that are created together, %d times in turn without and with a recorder; medians, and", whySize, len(on))
	p("of the ratios of each round the median. The reconciles wait for an API server with which they share the machine, so that it is")
	p("CPU time that tells what a recorder costs; and since no two rounds are the same, ratios about 1 say more about the machine than")
	p("about the recorder. The table below them says what the recorder itself takes.\n")
	p("| | without | with | ratio |")
	p("|---|---:|---:|---:|")
	row := func(what string, of func(whyRun) time.Duration, show func(time.Duration) string) {
		p("| %s | %s | %s | %s |", what, show(medianOf(off, of)), show(medianOf(on, of)), times(medianRatio(on, off, of)))
	}
	row("CPU time of the manager for each reconcile", whyRun.cpuEach, us)
	row("CPU time of the manager in all", func(r whyRun) time.Duration { return r.cpu }, ms)
	row("until all are Ready", func(r whyRun) time.Duration { return r.took }, ms)
	row("mean reconcile, with waiting", func(r whyRun) time.Duration { return r.reconcile }, us)
	p("| resident memory of the manager | %d MB | %d MB | |", off[len(off)-1].resident/1e6, on[len(on)-1].resident/1e6)
	s := on[len(on)-1].summary
	p("\nIn the last run there were %d reconciles, for %d user changes, with %d writes; %d events were folded into them, %d led to none.",
		s.Reconciles, s.UserChanges, s.Writes, s.Folded, s.Filtered)
}

func us(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond)) }

func medianOf(runs []whyRun, of func(whyRun) time.Duration) time.Duration {
	all := make([]time.Duration, len(runs))
	for i, run := range runs {
		all[i] = of(run)
	}
	return median(all)
}

// medianRatio compares the runs of each round.
func medianRatio(a, b []whyRun, of func(whyRun) time.Duration) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = ratio(of(a[i]), max(1, of(b[i])))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
