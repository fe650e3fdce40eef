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

	"github.com/opdock/opdock/why"
)

// whySize is the number of AppServices with which recording is compared with not recording.
const whySize = 300

// whyRun is what a manager needed for them.
type whyRun struct {
	took      time.Duration // to Ready
	reconcile time.Duration // of the reconciler, on average
	cpu       time.Duration
	resident  uint64
	summary   why.ControllerSummary // empty without a recorder
}

// whySection measures what it costs to record why objects are reconciled.
func whySection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	program := filepath.Join(e.work, "manager")
	if err := goBuild(ctx, program, "./cmd/manager"); err != nil {
		return "", err
	}
	var off, on []whyRun
	for round := range e.fleetRuns {
		for _, recording := range []bool{false, true} {
			run, err := measureWhy(ctx, e, program, fmt.Sprintf("why-%d-%t", round, recording), recording)
			if err != nil {
				return "", err
			}
			say("Recording %t, round %d of %d: %s, %s per reconcile, %s of CPU time", recording, round+1, e.fleetRuns, ms(run.took), run.reconcile, ms(run.cpu))
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
	share := cost.share(on[len(on)-1])
	return sectionPage("why", "Recording why objects are reconciled", time.Since(began), func(p printer) {
		writeWhy(p, off, on)
		writeCost(p, cost, share)
		writeFlood(p, flood)
	}, []goal{
		{"time that recording takes, of the time of a reconcile of the fleet", "at most 3 %", fmt.Sprintf("%.2f %%", 100*share), share <= 0.03},
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
		if run.took, err = f.createAppServices(ctx, whySize); err != nil {
			return err
		}
		families, err := f.scrape(ctx)
		if err != nil {
			return err
		}
		for _, metric := range families["controller_runtime_reconcile_time_seconds"].GetMetric() {
			for _, label := range metric.GetLabel() {
				if histogram := metric.GetHistogram(); label.GetValue() == "appservice" && histogram.GetSampleCount() > 0 {
					run.reconcile = seconds(histogram.GetSampleSum() / float64(histogram.GetSampleCount()))
				}
			}
		}
		for _, metric := range families["process_cpu_seconds_total"].GetMetric() {
			run.cpu = seconds(metric.GetCounter().GetValue())
		}
		if run.resident, err = residentAfter(ctx, f.pid()); err != nil || !recording {
			return err
		}
		run.summary, err = summaryOf(ctx, address)
		return err
	}, arguments...)
	return run, err
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
	p("The fleet's manager with %d AppServices that are created together, %d times in turn without and with a recorder; medians.", whySize, len(on))
	p("Both share the machine with the cluster, so that the ratios say more about the machine than about the recorder if they are")
	p("about 1; the table below them says what the recorder itself takes.\n")
	p("| | without | with | ratio |")
	p("|---|---:|---:|---:|")
	row := func(what string, of func(whyRun) time.Duration, show func(time.Duration) string) {
		a, b := medianOf(off, of), medianOf(on, of)
		p("| %s | %s | %s | %s |", what, show(a), show(b), times(ratio(b, a)))
	}
	row("until all are Ready", func(r whyRun) time.Duration { return r.took }, ms)
	row("mean reconcile", func(r whyRun) time.Duration { return r.reconcile }, us)
	row("CPU time of the manager", func(r whyRun) time.Duration { return r.cpu }, ms)
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
