// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/why"
)

// Trace holds the effects of one change on one controller.
type Trace struct {
	// Events are the events that called the controller, in their order of arrival.
	Events []Event `json:"events"`
	// Reconciles are the calls of the reconciler, in order.
	Reconciles []Reconcile `json:"reconciles"`
	// Writes is the number of write requests of all reconciles.
	Writes int `json:"writes"`
}

// Event is one event that led to a reconcile.
type Event struct {
	Type    why.CauseType `json:"type"`
	Object  *why.Object   `json:"object,omitempty"`
	Changes []why.Change  `json:"changes,omitempty"`
	By      []why.Writer  `json:"by,omitempty"`
	// Reconcile is the index of the reconcile that it was folded into.
	Reconcile int `json:"reconcile"`
	// ResourceVersion is the version of the object after the event. Seen is when the event arrived.
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	Seen            time.Time `json:"seen"`
}

// Reconcile is one call of a reconciler.
type Reconcile struct {
	Folded   int           `json:"folded"`
	Writes   []why.Write   `json:"writes,omitempty"`
	Outcome  why.Outcome   `json:"outcome"`
	Findings []why.Finding `json:"findings,omitempty"`
}

// newTrace builds a trace from records.
func newTrace(records []*why.Record) Trace {
	t := Trace{Events: []Event{}, Reconciles: []Reconcile{}}
	for i, r := range records {
		t.Reconciles = append(t.Reconciles, Reconcile{Folded: r.Folded, Writes: r.Writes, Outcome: r.Outcome, Findings: r.Findings})
		t.Writes += r.Written
		for _, c := range r.Causes {
			t.Events = append(t.Events, Event{
				Type: c.Type, Object: c.Object, Changes: c.Changes, By: slices.Clone(c.By), Reconcile: i,
				ResourceVersion: c.ResourceVersion, Seen: c.Seen,
			})
		}
	}
	return t
}

// nameWriters copies missing writers of events from the trace of a witness.
func (t *Trace) nameWriters(witness *Trace) {
	for i := range t.Events {
		e := &t.Events[i]
		if len(e.By) > 0 || e.Object == nil {
			continue
		}
		for j := range witness.Events {
			if e.same(&witness.Events[j]) {
				e.By = witness.Events[j].By
			}
		}
	}
}

// onlyStoppingPods reports whether an event only reports stopping pods. Deployments and ReplicaSets have counted these
// by default since Kubernetes 1.35, so the learner's server did not send such events.
func (e *Event) onlyStoppingPods() bool { return e.only("status.terminatingReplicas") }

// same reports whether two controllers got the same event.
func (e *Event) same(other *Event) bool {
	return e.Type == other.Type && e.ResourceVersion == other.ResourceVersion && e.Object != nil && other.Object != nil && e.Object.UID == other.Object.UID
}

// only reports whether an event changed only these fields.
func (e *Event) only(paths ...string) bool {
	for _, change := range e.Changes {
		if !slices.ContainsFunc(paths, func(path string) bool { return change.Path == path || strings.HasPrefix(change.Path, path+".") }) {
			return false
		}
	}
	return len(e.Changes) > 0
}
