// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"time"

	"github.com/opdock/opdock/why/diff"
)

// Record is one reconcile: its causes and its effects. The endpoint serves it as JSON.
type Record struct {
	// ID counts the reconciles of this recorder, from 1, in the order in which they start. Records and streams contain
	// reconciles that have ended, in the order in which they ended. A stream continues after an ID.
	ID uint64 `json:"id"`
	// Controller is the name of the controller.
	Controller string `json:"controller"`
	// Object is the reconciled object.
	Object Object `json:"object"`
	// Causes are the events that were folded into this reconcile, oldest first; at most Options.MaxCauses of them.
	Causes []Cause `json:"causes"`
	// Folded is the number of events, including those that Causes has no room for.
	Folded int `json:"folded"`
	// Start is when the reconciler was called, and Waited the time since its first cause was due. Timers, delays and
	// the back-off of failed requests are intended and not included.
	Start  time.Time     `json:"start"`
	Waited time.Duration `json:"waited"`
	// Duration is how long the reconciler took.
	Duration time.Duration `json:"duration"`
	// Writes are the changes it made, in their order; at most Options.MaxWrites of them.
	Writes []Write `json:"writes,omitempty"`
	// Written is the number of writes, including those that Writes has no room for.
	Written int `json:"written"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Error is the error it returned, shortened.
	Error string `json:"error,omitempty"`
	// RequeueAfter is the delay after which it asked to be called again.
	RequeueAfter time.Duration `json:"requeueAfter,omitempty"`
	// Findings are the findings about this reconcile.
	Findings []Finding `json:"findings,omitempty"`
}

// changedSomething reports whether it sent a write that is not known to be a no-op.
func (r *Record) changedSomething() bool {
	return r.Written > len(r.Writes) || slices.ContainsFunc(r.Writes, func(w Write) bool { return !w.NoChange })
}

func (r *Record) isLoop() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Type == Loop })
}

// Object names an object.
type Object struct {
	// Kind may be empty for the reconciled object, if the controller does not reconcile objects of one kind.
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
	// Object is the object of the event; empty for retries and timers.
	Object *Object `json:"object,omitempty"`
	// ResourceVersion is the object's after the event.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Changes are the fields that differ between old and new; at most Options.MaxChanges of them.
	Changes []Change `json:"changes,omitempty"`
	// Changed is the number of fields that differ, including those that Changes has no room for.
	Changed int `json:"changed,omitempty"`
	// By holds the writers of the change, as far as managed fields identify them.
	By []Writer `json:"by,omitempty"`
	// Seen is when the event arrived.
	Seen time.Time `json:"seen"`
	// Write names the write that this event is the echo of: one of any controller of the recorder. Its record may follow
	// this one, if that reconcile is still running.
	Write *WriteRef `json:"write,omitempty"`
	// Repeated is whether the previous reconcile of the object already had the same event: two watches reported it, or
	// it arrived at the moment that reconcile started.
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
	// Deleted is the deletion of an object.
	Deleted CauseType = "deleted"
	// Resynced is an update without a change: the informer repeats its content.
	Resynced CauseType = "resynced"
	// Generic comes from a channel or another source that is not a watch.
	Generic CauseType = "generic"
	// Retried follows an error or a panic of the previous reconcile, or its request to requeue without a delay.
	Retried CauseType = "retried"
	// Timer is the RequeueAfter of the previous reconcile.
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
	// Manager is the field manager of the write, if it is known.
	Manager string `json:"manager,omitempty"`
	// ResourceVersion is the object's version after the write. If NoChange is set, it is the same as before.
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
	// Succeeded is a reconcile without an error that requested no other.
	Succeeded Outcome = "succeeded"
	// Requeued is a reconcile that asked to be called again.
	Requeued Outcome = "requeued"
	// Failed is an error that is retried.
	Failed Outcome = "failed"
	// Terminal is an error that is not retried.
	Terminal Outcome = "terminal"
	// Panicked is a reconcile that panicked. The panic continues.
	Panicked Outcome = "panicked"
)

// Finding is something remarkable about a reconcile.
type Finding struct {
	Type FindingType `json:"type"`
	// Message describes the finding in a sentence.
	Message string `json:"message"`
	// Path and Writers belong to loops: the field that goes back and forth, and its writers.
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
