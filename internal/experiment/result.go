// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Result holds the measurements of an experiment.
type Result struct {
	// Kubernetes is the version of the control plane.
	Kubernetes string `json:"kubernetes"`
	// Runs is how often each change was made.
	Runs int `json:"runs"`
	// ReadyAfter is the minimum time until a pod became ready.
	ReadyAfter time.Duration `json:"readyAfter"`
	Rows       []Row         `json:"rows"`
}

// ReadResult reads a result that was written as JSON.
func ReadResult(from io.Reader) (*Result, error) {
	var r Result
	if err := json.NewDecoder(from).Decode(&r); err != nil {
		return nil, fmt.Errorf("reading a result: %w", err)
	}
	if r.Runs < 1 || len(r.Rows) == 0 {
		return nil, errors.New("reading a result: it has no rows")
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		unknown := func(e Event) bool { return e.Object == nil }
		if row.Title == "" || len(row.Naive) != len(Watchings) || slices.ContainsFunc(row.AppService.Seen, unknown) {
			return nil, fmt.Errorf("reading a result: row %d is incomplete", i+1)
		}
	}
	return &r, nil
}

// Row is a change and a number of containers, with its measurements.
type Row struct {
	Change     string `json:"change"`
	Title      string `json:"title"`
	Containers int    `json:"containers"`
	// Counted is the number that the learner noted, or nil if there is none.
	Counted *int `json:"counted"`
	// Naive holds the naive controllers, in the order of Watchings.
	Naive []Measured `json:"naive"`
	// AppService is the fleet's controller.
	AppService Measured `json:"appService"`
}

// Measured holds the effects of a change on a controller.
type Measured struct {
	Controller string `json:"controller"`
	// Events is the number of events for watched objects, whether they called the controller or not. Then is the
	// number without events that the learner's server did not send. Possible is the range of that number.
	Events     Spread `json:"events"`
	Then       Spread `json:"then"`
	Possible   Range  `json:"possible"`
	Reconciles Spread `json:"reconciles"`
	Writes     Spread `json:"writes"`
	// Trace is a typical run. Seen holds all its events, if some of them did not call the controller.
	Trace Trace   `json:"trace"`
	Seen  []Event `json:"seen,omitempty"`
}

// Spread is the median and the range of a number over all runs.
type Spread struct {
	Median int `json:"median"`
	Least  int `json:"least"`
	Most   int `json:"most"`
}

// String returns the median, followed by the range if the runs differ.
func (s Spread) String() string {
	if s.Least == s.Most {
		return strconv.Itoa(s.Median)
	}
	return fmt.Sprintf("%d (%d–%d)", s.Median, s.Least, s.Most)
}

// newSpread uses the lower of two medians, so the median is a number that occurred.
func newSpread(values []int) Spread {
	sorted := slices.Sorted(slices.Values(values))
	return Spread{Median: sorted[(len(sorted)-1)/2], Least: sorted[0], Most: sorted[len(sorted)-1]}
}

// observation is what one controller did in one run. seen is nil if every event called the controller.
type observation struct {
	trace Trace
	seen  []Event
}

func (o *observation) events() []Event {
	if o.seen != nil {
		return o.seen
	}
	return o.trace.Events
}

func (o *observation) then() (count int) {
	for _, e := range o.events() {
		if !e.onlyStoppingPods() {
			count++
		}
	}
	return count
}

// newMeasured summarises several runs.
func newMeasured(controller string, runs []observation) Measured {
	var events, then, reconciles, writes []int
	for i := range runs {
		events = append(events, len(runs[i].events()))
		then = append(then, runs[i].then())
		reconciles = append(reconciles, len(runs[i].trace.Reconciles))
		writes = append(writes, runs[i].trace.Writes)
	}
	m := Measured{
		Controller: controller, Events: newSpread(events), Then: newSpread(then), Reconciles: newSpread(reconciles), Writes: newSpread(writes),
	}
	m.Possible = possible(runs[0].events())
	for i := range runs[1:] {
		other := possible(runs[i+1].events())
		m.Possible = Range{min(m.Possible.Least, other.Least), max(m.Possible.Most, other.Most)}
	}
	usual := 0
	for i := range runs {
		if distance(m, &runs[i]) < distance(m, &runs[usual]) {
			usual = i
		}
	}
	m.Trace, m.Seen = runs[usual].trace, runs[usual].seen
	return m
}

// distance returns how far a run is from the medians.
func distance(m Measured, o *observation) int {
	off := func(a, b int) int { return max(a-b, b-a) }
	return off(m.Events.Median, len(o.events())) + off(m.Then.Median, o.then()) + off(m.Reconciles.Median, len(o.trace.Reconciles)) + off(m.Writes.Median, o.trace.Writes)
}
