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

// Result is what was seen.
type Result struct {
	// Kubernetes is the version of the control plane.
	Kubernetes string `json:"kubernetes"`
	// Runs is how often each change was made.
	Runs int `json:"runs"`
	// ReadyAfter is how long a pod took to become ready, or a little longer.
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

// Row is a change, for a number of containers.
type Row struct {
	Change     string `json:"change"`
	Title      string `json:"title"`
	Containers int    `json:"containers"`
	// Counted is what the learner noted; nil if nothing.
	Counted *int `json:"counted"`
	// Naive are the naive controllers, in the order of Watchings.
	Naive []Measured `json:"naive"`
	// AppService is the fleet's.
	AppService Measured `json:"appService"`
}

// Measured is what a change led to in a controller.
type Measured struct {
	Controller string `json:"controller"`
	// Events is how many events came from what the controller watches, whether it was called for them or not, Then how many
	// of them a server of the learner's time would have sent as well, and Possible how many it could have been there.
	Events     Spread `json:"events"`
	Then       Spread `json:"then"`
	Possible   Range  `json:"possible"`
	Reconciles Spread `json:"reconciles"`
	Writes     Spread `json:"writes"`
	// Trace is a run with the usual numbers, and Seen are the events that came in it, if the controller was not called
	// for all of them.
	Trace Trace   `json:"trace"`
	Seen  []Event `json:"seen,omitempty"`
}

// Spread is a number that was measured several times.
type Spread struct {
	Median int `json:"median"`
	Least  int `json:"least"`
	Most   int `json:"most"`
}

// String is the median, and in which bounds the runs differed if they did.
func (s Spread) String() string {
	if s.Least == s.Most {
		return strconv.Itoa(s.Median)
	}
	return fmt.Sprintf("%d (%d–%d)", s.Median, s.Least, s.Most)
}

// newSpread takes the lower one of two medians, so that it is one that was seen.
func newSpread(values []int) Spread {
	sorted := slices.Sorted(slices.Values(values))
	return Spread{Median: sorted[(len(sorted)-1)/2], Least: sorted[0], Most: sorted[len(sorted)-1]}
}

// observation is what one run showed of one controller. Seen is nil if it was called for all it saw.
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
		if !e.isSince() {
			count++
		}
	}
	return count
}

// newMeasured makes one of several runs.
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

// distance is how far a run is from the medians.
func distance(m Measured, o *observation) int {
	off := func(a, b int) int { return max(a-b, b-a) }
	return off(m.Events.Median, len(o.events())) + off(m.Then.Median, o.then()) + off(m.Reconciles.Median, len(o.trace.Reconciles)) + off(m.Writes.Median, o.trace.Writes)
}
