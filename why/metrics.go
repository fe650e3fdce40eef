// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import "github.com/prometheus/client_golang/prometheus"

// collector computes the metrics from the totals on each scrape, so they cost nothing in
// between. Labels are bounded: names of controllers, kinds, and fixed sets.
type collector struct{ recorder *Recorder }

func description(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("why_"+name, help, labels, nil)
}

var (
	reconcilesDesc  = description("reconciles_total", "Total number of reconciles, by outcome.", "controller", "outcome")
	causesDesc      = description("causes_total", "Total number of causes of reconciles, by type of event and kind of object.", "controller", "cause", "kind")
	foldedDesc      = description("folded_events_total", "Total number of events that were folded into a reconcile triggered by another event.", "controller")
	filteredDesc    = description("filtered_events_total", "Total number of events that did not trigger a reconcile.", "controller")
	writesDesc      = description("writes_total", "Total number of write requests sent by reconciles.", "controller", "verb", "kind")
	findingsDesc    = description("findings_total", "Total number of findings about reconciles: no-op, self-inflicted or part of a loop.", "controller", "finding")
	userChangesDesc = description("user_changes_total", "Total number of changes that were not made by a controller.", "controller")
	waitDesc        = description("wait_seconds", "Time from the first event to the start of the reconcile.", "controller")
	keptBytesDesc   = description("kept_bytes", "Approximate size of the kept records in bytes.")
	droppedDesc     = description("dropped_total", "Total number of items dropped for lack of space: old records, causes, changes of causes, and late writes.", "what")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, each := range []*prometheus.Desc{
		reconcilesDesc, causesDesc, foldedDesc, filteredDesc, writesDesc, findingsDesc, userChangesDesc, waitDesc, keptBytesDesc, droppedDesc,
	} {
		descriptions <- each
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(collected chan<- prometheus.Metric) {
	var metrics []prometheus.Metric
	r := c.recorder
	r.readSettled(func() { metrics = r.collect() })
	for _, metric := range metrics {
		collected <- metric
	}
}

// collect needs the recorder's mutex.
func (r *Recorder) collect() (metrics []prometheus.Metric) {
	add := func(kind prometheus.ValueType, desc *prometheus.Desc, value float64, labels ...string) {
		metrics = append(metrics, prometheus.MustNewConstMetric(desc, kind, value, labels...))
	}
	// Two controllers may have the same name, and metrics must not come twice.
	for name, t := range r.totalsByName() {
		for outcome, number := range t.outcomes {
			add(prometheus.CounterValue, reconcilesDesc, float64(number), name, string(outcome))
		}
		for key, number := range t.causes {
			add(prometheus.CounterValue, causesDesc, float64(number), name, string(key.cause), key.kind)
		}
		for key, number := range t.writes {
			add(prometheus.CounterValue, writesDesc, float64(number), name, key.verb, key.kind)
		}
		for _, finding := range []FindingType{NoOp, SelfInflicted, Loop} {
			add(prometheus.CounterValue, findingsDesc, float64(t.findings[finding]), name, string(finding))
		}
		add(prometheus.CounterValue, foldedDesc, float64(t.folded), name)
		add(prometheus.CounterValue, filteredDesc, float64(t.filtered), name)
		add(prometheus.CounterValue, userChangesDesc, float64(t.userChanges), name)
		buckets, below := map[float64]uint64{}, uint64(0)
		for i, bound := range waitBuckets {
			below += t.waits[i]
			buckets[bound] = below
		}
		metrics = append(metrics, prometheus.MustNewConstHistogram(waitDesc, t.reconciles, t.waited.Seconds(), buckets, name))
	}
	dropped := r.droppedNow()
	add(prometheus.GaugeValue, keptBytesDesc, float64(r.store.bytes))
	add(prometheus.CounterValue, droppedDesc, float64(dropped.Records), "records")
	add(prometheus.CounterValue, droppedDesc, float64(dropped.Causes), "causes")
	add(prometheus.CounterValue, droppedDesc, float64(dropped.Changes), "changes")
	add(prometheus.CounterValue, droppedDesc, float64(dropped.Writes), "writes")
	return metrics
}

// namedTotals are the totals of all controllers with the same name.
type namedTotals struct {
	totals
	filtered uint64
}

// totalsByName needs the recorder's mutex.
func (r *Recorder) totalsByName() map[string]*namedTotals {
	all := map[string]*namedTotals{}
	for _, c := range r.controllers {
		t := all[c.name]
		if t == nil {
			t = &namedTotals{totals: newTotals()}
			all[c.name] = t
		}
		t.merge(&c.totals)
		mergeCounts(t.causes, c.unlisted)
		t.filtered += c.filtered
	}
	return all
}

func (t *totals) merge(other *totals) {
	t.reconciles += other.reconciles
	t.folded += other.folded
	t.userChanges += other.userChanges
	t.waited += other.waited
	for i, number := range other.waits {
		t.waits[i] += number
	}
	mergeCounts(t.causes, other.causes)
	mergeCounts(t.outcomes, other.outcomes)
	mergeCounts(t.writes, other.writes)
	mergeCounts(t.findings, other.findings)
}

func mergeCounts[key comparable](into, from map[key]uint64) {
	for k, number := range from {
		into[k] += number
	}
}
