// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/opdock/opdock/why"
)

// Recording is compared with not recording in many short rounds. In each round, two managers reconcile whySize
// AppServices each.
const (
	whySize   = 100
	whyRounds = 4 // rounds for each run of other contenders
)

// whyRun holds the measurements of a manager in one round.
type whyRun struct {
	took      time.Duration         // until all are Ready
	reconcile time.Duration         // mean duration, mostly spent waiting
	cpu       time.Duration         // of the process, from the first object
	count     uint64                // reconciles of all kinds in that time
	summary   why.ControllerSummary // empty without a recorder
}

// cpuEach returns the CPU time of the manager per reconcile, including watches, caches and requests.
func (r whyRun) cpuEach() time.Duration { return r.cpu / time.Duration(max(1, r.count)) }

// whyResult holds the runs with and without a recorder, by round.
type whyResult struct {
	off, on                 []whyRun
	residentOff, residentOn uint64 // with the AppServices of the last round
}

// compared returns the ratio of a value with a recorder to the value without, and its standard error. The ratio is of
// the sums over all rounds, so every round contributes.
func (r whyResult) compared(of func(whyRun) time.Duration) (more, uncertain float64) {
	var on, off time.Duration
	for i := range r.on {
		on, off = on+of(r.on[i]), off+of(r.off[i])
	}
	more = ratio(on, max(1, off))
	var squares float64
	for i := range r.on {
		apart := ratio(of(r.on[i]), max(1, of(r.off[i]))) - more
		squares += apart * apart
	}
	rounds := float64(len(r.on))
	return more, math.Sqrt(squares / max(1, rounds-1) / rounds)
}

func cpuOfRun(r whyRun) time.Duration { return r.cpu }

func reconcileOfRun(r whyRun) time.Duration { return r.reconcile }

// whySection measures the cost of recording why objects are reconciled.
func whySection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	program := filepath.Join(e.work, "manager")
	if err := buildManager(ctx, program); err != nil {
		return "", err
	}
	result, err := measureWhy(ctx, e, program)
	if err != nil {
		return "", err
	}
	whole, err := compare(ctx, e, "AppService", measured{"without", samplesOf(result.off)}, measured{"recording", samplesOf(result.on)})
	if err != nil {
		return "", err
	}
	profile, err := profileWhy(ctx, e, program)
	if err != nil {
		return "", err
	}
	cost := measureCost(e.runs)
	single, err := compare(ctx, e, "ThousandEvents", measured{"without", map[string][]time.Duration{"time": perThousand(cost.without)}},
		measured{"off", map[string][]time.Duration{"time": perThousand(cost.off)}})
	if err != nil {
		return "", err
	}
	flood, err := measureFlood(ctx, e.flood)
	if err != nil {
		return "", err
	}
	cpu, _ := result.compared(cpuOfRun)
	reconcile, _ := result.compared(reconcileOfRun)
	unmeasurable := !single.differs["time"] && cost.off[0].AllocsPerOp() == cost.without[0].AllocsPerOp()
	return sectionPage("why", "Recording why objects are reconciled", time.Since(began), func(p printer) {
		writeWhy(p, result, whole)
		writeWhyProfile(p, profile)
		writeCost(p, cost, single)
		writeFlood(p, flood)
	}, []goal{
		{"CPU time of the recorder, as a share of the manager's under load", "at most 3 %", fmt.Sprintf("%.2f %%", 100*profile.share()), profile.share() <= 0.03},
		{"CPU time per AppService of a manager that records, against one that does not", "at most 1.03 ×", fmt.Sprintf("%.3f ×", cpu), cpu <= 1.03},
		{"duration of a reconcile of a manager that records, against one that does not; most of it is waiting for the API server", "at most 1.03 ×", fmt.Sprintf("%.3f ×", reconcile), reconcile <= 1.03},
		{
			fmt.Sprintf("bytes allocated to record an event that changes %d fields", hugeFields), "at most 64 kB",
			fmt.Sprintf("%.1f kB", float64(cost.huge.AllocedBytesPerOp())/1e3), cost.huge.AllocedBytesPerOp() <= 64_000,
		},
		{"an event and its reconcile with the recorder off, against no recorder", "not measurable", times(cost.offRatio()), unmeasurable},
		{fmt.Sprintf("memory after %s of load, against memory after a tenth of it", e.flood), "at most 1.1 ×", times(flood.growth()), flood.growth() <= 1.1},
	}), nil
}

// samplesOf returns the samples per AppService, for benchstat.
func samplesOf(runs []whyRun) map[string][]time.Duration {
	samples := map[string][]time.Duration{}
	for _, run := range runs {
		samples["cpu"] = append(samples["cpu"], run.cpu/whySize)
		samples["until-ready"] = append(samples["until-ready"], run.took/whySize)
	}
	return samples
}

// cpuOf returns the CPU time of a manager since it started.
func cpuOf(families map[string]*dto.MetricFamily) (used time.Duration) {
	for _, metric := range families["process_cpu_seconds_total"].GetMetric() {
		used += seconds(metric.GetCounter().GetValue())
	}
	return used
}

// reconcilesOf returns the number of reconciles and their total duration, for one controller or, if controller is
// empty, for all.
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

// summaryOf requests the summary of the AppService controller from a manager.
func summaryOf(ctx context.Context, address string) (found why.ControllerSummary, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/why/summary", nil)
	if err != nil {
		return found, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	var summary why.Summary
	if err := json.NewDecoder(response.Body).Decode(&summary); err != nil {
		return found, err
	}
	index := slices.IndexFunc(summary.Controllers, func(c why.ControllerSummary) bool { return c.Name == "appservice" })
	if index < 0 || summary.Controllers[index].Reconciles == 0 {
		return found, fmt.Errorf("the manager has recorded no reconciles of AppServices: %+v", summary)
	}
	return summary.Controllers[index], nil
}

func writeWhy(p printer, r whyResult, whole benchstat) {
	p("Two managers of the fleet run side by side. In each of %d rounds, %d AppServices are created for each of them at the", len(r.on), whySize)
	p("same time, in separate namespaces. One manager records and the other does not; they change roles after each round. Both")
	p("share the machine with the API server, so rounds vary. Each round is one sample of the cost per AppService, and benchstat")
	p("reports whether the difference is significant. A profile shows the cost of the recorder itself.\n")
	p("```\n%s\n```\n", whole.table)
	p("| | without | recording | ratio, all rounds |")
	p("|---|---:|---:|---:|")
	row := func(what string, of func(whyRun) time.Duration) {
		more, uncertain := r.compared(of)
		p("| %s, median | %s | %s | %.3f × ± %.1f %% |", what, us(medianOf(r.off, of)), us(medianOf(r.on, of)), more, 100*uncertain)
	}
	row("CPU time of the manager for each AppService", func(r whyRun) time.Duration { return r.cpu / whySize })
	row("CPU time of the manager for each reconcile", whyRun.cpuEach)
	row("mean duration of a reconcile", reconcileOfRun)
	p("| resident memory of the manager | %d MB | %d MB | |", r.residentOff/1e6, r.residentOn/1e6)
	p("\n± is the standard error over the rounds.")
	s := r.on[len(r.on)-1].summary
	p("The last round had %d reconciles and %d writes for %d changes by users. %d events were folded into these reconciles, and %d led to none.",
		s.Reconciles, s.Writes, s.UserChanges, s.Folded, s.Filtered)
}

func us(d time.Duration) string { return fmt.Sprintf("%.0f µs", float64(d)/float64(time.Microsecond)) }

func medianOf(runs []whyRun, of func(whyRun) time.Duration) time.Duration {
	all := make([]time.Duration, len(runs))
	for i, run := range runs {
		all[i] = of(run)
	}
	return median(all)
}
