// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/trace"
)

// A story has at most this many lines before the fault and after it.
const linesBefore, linesAfter = 6, 14

// tell returns the events around the fault, or the last events if the lens has no fault.
func (r *run) tell() (lines []report.Line) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if r.lens.Flush(ctx) != nil {
		return nil
	}
	var events []*lens.Event
	fault := -1
	for _, e := range r.events(0) {
		if !r.campaign.isTold(e) {
			continue
		}
		if fault < 0 && isFault(e) {
			fault = len(events)
		}
		events = append(events, e)
	}
	first := -1 // the first start is no fault
	for i, e := range events {
		if first < 0 && e.Process != nil && e.Process.Started {
			first = i
		}
	}
	if fault == first {
		fault = -1
		for i := first + 1; i < len(events) && fault < 0; i++ {
			if isFault(events[i]) {
				fault = i
			}
		}
	}
	from, to := max(0, len(events)-linesAfter), len(events)
	if fault >= 0 {
		from, to = max(0, fault-linesBefore), min(len(events), fault+linesAfter)
	}
	for i, e := range events[from:to] {
		line := r.lineOf(e)
		line.Fault = line.Fault && from+i != first
		lines = append(lines, line)
	}
	r.mutex.Lock()
	lines = append(lines, r.notes...)
	r.mutex.Unlock()
	slices.SortStableFunc(lines, func(a, b report.Line) int { return cmp.Compare(a.At, b.At) })
	return lines
}

// lineOf formats an event for a story.
func (r *run) lineOf(e *lens.Event) report.Line {
	line := strings.TrimSpace(trace.Line(e, e.At))
	_, text, _ := strings.Cut(line, "  ") // the time has a field of its own
	return report.Line{At: e.At.Sub(r.began), Text: strings.Join(strings.Fields(text), " "), Fault: isFault(e), Where: sourceOf(e), Wrong: r.isCulprit(e)}
}

// accuse says that a request is what is wrong.
func (r *run) accuse(request uint64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.culprits == nil {
		r.culprits = map[uint64]bool{}
	}
	r.culprits[request] = true
}

func (r *run) isCulprit(e *lens.Event) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return e.Request != nil && r.culprits[e.Request.ID]
}

// sourceOf is the line that sent a write.
func sourceOf(e *lens.Event) string {
	if e.Request == nil || len(e.Request.Source) == 0 {
		return ""
	}
	return e.Request.Source[0]
}

func isFault(e *lens.Event) bool {
	return e.Request != nil && e.Request.Fault != "" || e.Delivery != nil && e.Delivery.Fault != "" || e.Process != nil && e.Process.Started
}

// isTold leaves out what happens all the time.
func (c *campaign) isTold(e *lens.Event) bool {
	switch {
	case e.Request != nil:
		return trace.ShowWrites.Wants(e) && !neverEnds(e.Request.Resource) && !c.elections.has(e.Request)
	case e.Delivery != nil:
		return e.Delivery.Fault != ""
	case e.Reconcile != nil:
		return e.Reconcile.Ended && e.Reconcile.Error != ""
	}
	return e.Process != nil
}
