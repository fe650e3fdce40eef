// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"time"

	"github.com/opdock/opdock/why/diff"
)

// Record is one reconcile: what caused it, and what it did. It is also what the endpoint serves, as JSON.
type Record struct {
	// ID counts the reconciles of this recorder, from 1, in the order in which they begin. There are records only of those
	// that have ended, in that order, which is also that of streams; they are continued after an ID.
	ID uint64 `json:"id"`
	// Controller is the name of the controller.
	Controller string `json:"controller"`
	// Object is what was reconciled.
	Object Object `json:"object"`
	// Causes are the events that were folded into this reconcile, oldest first; at most Options.MaxCauses of them.
	Causes []Cause `json:"causes"`
	// Folded is how many events there were, including those that Causes has no room for.
	Folded int `json:"folded"`
	// Start is when the reconciler was called, and Waited how long after the first of its causes wanted that. Timers, delays
	// and the time for which a queue holds back what has failed are intended, and not a part of it.
	Start  time.Time     `json:"start"`
	Waited time.Duration `json:"waited"`
	// Duration is how long the reconciler took.
	Duration time.Duration `json:"duration"`
	// Writes are the changes it made, in their order; at most Options.MaxWrites of them.
	Writes []Write `json:"writes,omitempty"`
	// Written is how many there were, including those that Writes has no room for.
	Written int `json:"written"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Error is the error it returned, shortened.
	Error string `json:"error,omitempty"`
	// RequeueAfter is when it asked to be called again.
	RequeueAfter time.Duration `json:"requeueAfter,omitempty"`
	// Findings are what is remarkable about it.
	Findings []Finding `json:"findings,omitempty"`
}

// changedSomething reports whether it wrote anything that is not known to have changed nothing.
func (r *Record) changedSomething() bool {
	return r.Written > len(r.Writes) || slices.ContainsFunc(r.Writes, func(w Write) bool { return !w.NoChange })
}

func (r *Record) isLoop() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Type == Loop })
}

// Object names an object.
type Object struct {
	// Kind may be empty for what was reconciled, if the controller does not reconcile objects of one kind.
	Kind      string `json:"kind,omitempty"`
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid,omitempty"`
}

// Cause is one event that led to a reconcile.
type Cause struct {
	Type CauseType `json:"type"`
	// Object is what the event was about; empty for retries and timers.
	Object *Object `json:"object,omitempty"`
	// ResourceVersion is the object's after the event.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Changes are the fields that differ between old and new; at most Options.MaxChanges of them.
	Changes []Change `json:"changes,omitempty"`
	// Changed is how many fields differ, including those that Changes has no room for.
	Changed int `json:"changed,omitempty"`
	// By are the writers of what changed, as far as managed fields tell.
	By []Writer `json:"by,omitempty"`
	// Seen is when the event arrived.
	Seen time.Time `json:"seen"`
	// Write names the write that this event is the echo of: one of any controller of the recorder. Its record may follow
	// this one, if that reconcile is still running.
	Write *WriteRef `json:"write,omitempty"`
	// Repeated is whether the reconcile of the object before this one had the same event already: two watches have seen it,
	// or it came in the instant in which that one began.
	Repeated bool `json:"repeated,omitempty"`
}

// CauseType is the kind of event that caused a reconcile.
type CauseType string

const (
	// Listed is an object that was there when the watch began.
	Listed CauseType = "listed"
	// Created is an object that is new.
	Created CauseType = "created"
	// Updated is an object that changed, which includes the begin of its deletion if it does not go at once.
	Updated CauseType = "updated"
	// Deleted is an object that is gone.
	Deleted CauseType = "deleted"
	// Resynced is an update without a change: the informer shows what it has once more.
	Resynced CauseType = "resynced"
	// Generic comes from a channel or another source that is no watch.
	Generic CauseType = "generic"
	// Retried follows an error or a panic of the reconcile before, or that it asked to be called again, without saying when.
	Retried CauseType = "retried"
	// Timer is what the reconcile before asked for by RequeueAfter.
	Timer CauseType = "timer"
	// Unknown is a reconcile that nothing that is watched here led to.
	Unknown CauseType = "unknown"
)

// Change is one field that differs.
type Change = diff.Change

// Writer is who changed something, from managed fields.
type Writer struct {
	Manager     string    `json:"manager"`
	Operation   string    `json:"operation,omitempty"`
	Subresource string    `json:"subresource,omitempty"`
	Time        time.Time `json:"time,omitzero"`
}

// Write is a change that a reconcile made.
type Write struct {
	// Verb is create, update, patch, apply, delete or deletecollection.
	Verb        string `json:"verb"`
	Subresource string `json:"subresource,omitempty"`
	Object      Object `json:"object"`
	// Manager is under which name it was written, if that is known.
	Manager string `json:"manager,omitempty"`
	// ResourceVersion is the object's after the write. It is the one before if nothing changed, which NoChange says.
	ResourceVersion string        `json:"resourceVersion,omitempty"`
	NoChange        bool          `json:"noChange,omitempty"`
	At              time.Time     `json:"at"`
	Duration        time.Duration `json:"duration"`
	// Error is how the server refused it.
	Error string `json:"error,omitempty"`
}

// WriteRef names a write of a record.
type WriteRef struct {
	Record uint64 `json:"record"`
	Index  int    `json:"index"`
}

// Outcome is how a reconcile ended.
type Outcome string

const (
	// Succeeded is a reconcile that wants nothing more.
	Succeeded Outcome = "succeeded"
	// Requeued is one that asked to be called again.
	Requeued Outcome = "requeued"
	// Failed is an error that is retried.
	Failed Outcome = "failed"
	// Terminal is an error that is not retried.
	Terminal Outcome = "terminal"
	// Panicked is what it says; the panic goes on.
	Panicked Outcome = "panicked"
)

// Finding is something remarkable about a reconcile.
type Finding struct {
	Type FindingType `json:"type"`
	// Message says it in a sentence.
	Message string `json:"message"`
	// Path and Writers belong to loops: what goes back and forth, and who moves it.
	Path    string   `json:"path,omitempty"`
	Writers []Writer `json:"writers,omitempty"`
}

// FindingType is the kind of a finding.
type FindingType string

const (
	// NoOp is a reconcile for nothing: nothing that the reconciler reads has changed, and it changed nothing.
	NoOp FindingType = "noop"
	// SelfInflicted is a reconcile whose causes are all echoes of its own writes.
	SelfInflicted FindingType = "self-inflicted"
	// Loop is a field that goes back and forth, or a reconcile that causes itself again and again.
	Loop FindingType = "loop"
)
