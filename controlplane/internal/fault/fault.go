// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault holds the one kind of error that the control plane shows to
// people: what happened, where, and what to do next.
package fault

import "fmt"

// Reason is the machine-readable cause of a failed start.
type Reason string

// The reasons a control plane does not start. They are part of the report protocol between
// package serve and the parent process.
const (
	PortTaken    Reason = "PortTaken"
	Locked       Reason = "Locked"
	NewerState   Reason = "NewerState"
	CorruptState Reason = "CorruptState"
	DiskFull     Reason = "DiskFull"
	KeptState    Reason = "KeptState"
	Interrupted  Reason = "Interrupted"
	// BadSnapshot is for a snapshot file that is missing, damaged or no snapshot.
	BadSnapshot Reason = "BadSnapshot"
	// NoSource is for a cluster to be copied that does not run.
	NoSource Reason = "NoSource"
	// BadOption is for a value that the control plane cannot serve, such as an unknown version.
	BadOption Reason = "BadOption"
	Internal  Reason = "Internal"
)

// Error is a failure with a way out.
type Error struct {
	Reason  Reason
	Message string // one sentence: what happened, and where
	Hint    string // what to do next
	Cause   error  // may be nil
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return fmt.Sprintf("%s: %v", e.Message, e.Cause)
}

func (e *Error) Unwrap() error { return e.Cause }
