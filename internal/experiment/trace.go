// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/why"
)

// Trace is what one change led to, as one controller saw it.
type Trace struct {
	// Events are those that the controller was called for, in the order in which they were seen.
	Events []Event `json:"events"`
	// Reconciles are the calls, in their order.
	Reconciles []Reconcile `json:"reconciles"`
	// Writes is how many requests they made that write.
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
	// ResourceVersion is the object's after the event, and Seen when the event arrived.
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

// newTrace makes a trace of records.
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

// nameWriters takes from a witness who has changed what, where a trace does not know it.
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

// isSince reports whether an event is about nothing but pods that are stopping, which Deployments and ReplicaSets have counted by
// default since Kubernetes 1.35. The learner's server did not know of that field.
func (e *Event) isSince() bool { return e.only("status.terminatingReplicas") }

// same reports whether both are the same event, seen by two controllers.
func (e *Event) same(other *Event) bool {
	return e.Type == other.Type && e.ResourceVersion == other.ResourceVersion && e.Object != nil && other.Object != nil && e.Object.UID == other.Object.UID
}

// only reports whether an event changed nothing but these fields.
func (e *Event) only(paths ...string) bool {
	for _, change := range e.Changes {
		if !slices.ContainsFunc(paths, func(path string) bool { return change.Path == path || strings.HasPrefix(change.Path, path+".") }) {
			return false
		}
	}
	return len(e.Changes) > 0
}
