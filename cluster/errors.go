// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
)

// Reason is the reason why a control plane did not start, in one word.
type Reason string

const (
	// ReasonPortTaken means that something else listens on the cluster's port.
	ReasonPortTaken Reason = "PortTaken"
	// ReasonLocked means that a living control plane uses the same state folder.
	ReasonLocked Reason = "Locked"
	// ReasonNewerState means that the state was written by a newer version, which this one would damage.
	ReasonNewerState Reason = "NewerState"
	// ReasonCorruptState means that the state cannot be read. It is never removed unasked.
	ReasonCorruptState Reason = "CorruptState"
	// ReasonDiskFull means that there was no space to write the state.
	ReasonDiskFull Reason = "DiskFull"
	// ReasonKeptState means that an ephemeral cluster would have removed state that was meant to last.
	ReasonKeptState Reason = "KeptState"
	// ReasonInterrupted means that a signal stopped the control plane before it was ready.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonBadSnapshot means that the snapshot file is missing, damaged, or no snapshot.
	ReasonBadSnapshot Reason = "BadSnapshot"
	// ReasonNoSource means that the cluster to be forked or saved does not run.
	ReasonNoSource Reason = "NoSource"
	// ReasonBadOption means that the control plane does not support an option, such as an unknown version.
	ReasonBadOption Reason = "BadOption"
	// ReasonIncomplete means that the objects of a cluster were never copied completely, so it would start without them.
	ReasonIncomplete Reason = "Incomplete"
	// ReasonRestoring means that another process is restoring a snapshot in the same cluster.
	ReasonRestoring Reason = "Restoring"
	// ReasonInternal means any other failure; see the message.
	ReasonInternal Reason = "Internal"
)

// StartError is why a control plane did not start, in its own words.
type StartError struct {
	Reason  Reason
	Message string // what went wrong and where, one sentence
	Hint    string // what to do next; may be empty
}

func (e *StartError) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return strings.TrimSuffix(e.Message, ".") + "; " + e.Hint
}

// NotRunningError is returned by [Open] for a cluster that is not alive.
type NotRunningError struct {
	Status Status // as it was found; State is never Alive
}

func (e *NotRunningError) Error() string {
	start := fmt.Sprintf("start it with %q", "opdock up --name "+e.Status.Name)
	switch e.Status.State {
	case Stopped:
		return fmt.Sprintf("cluster %q is stopped; %s; its objects are kept", e.Status.Name, start)
	case Incomplete:
		return incomplete(e.Status).Error()
	case Dead:
		if e.Status.Ephemeral {
			return fmt.Sprintf("cluster %q is dead: its control plane%s ended without a clean stop; %s; it was ephemeral, so its objects are gone",
				e.Status.Name, pidSuffix(e.Status.PID), start)
		}
		return fmt.Sprintf("cluster %q is dead: its control plane%s ended without a clean stop; %s; its objects are kept",
			e.Status.Name, pidSuffix(e.Status.PID), start)
	default:
		return fmt.Sprintf("cluster %q was never started; %s", e.Status.Name, start)
	}
}

// incomplete is the error for a cluster whose objects were never copied completely.
func incomplete(s Status) *StartError {
	return &StartError{
		Reason:  ReasonIncomplete,
		Message: fmt.Sprintf("cluster %q is incomplete: its control plane ended before the objects were copied from %s", s.Name, s.Source),
		Hint:    fmt.Sprintf("copy them again, or remove it with %q", "opdock down --name "+s.Name+" --delete"),
	}
}

// NameError is returned for a name that no cluster can have.
type NameError struct {
	Name string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("%q is not a valid cluster name; use at most %d lower case letters, digits and dashes, "+
		"with a letter or digit at both ends", e.Name, maxNameLength)
}

// NoBinaryError is returned by [FindBinary] when there is no control plane binary.
type NoBinaryError struct {
	Looked []string // the places that were searched
}

func (e *NoBinaryError) Error() string {
	return fmt.Sprintf("the %s binary was not found (searched: %s); run %q to build it, or set %s to its path",
		binaryName, strings.Join(e.Looked, ", "), "opdock up", binaryEnv)
}

// NoGoError is returned by [BuildBinary] when there is no Go toolchain to build with.
type NoGoError struct {
	Err error
}

func (e *NoGoError) Error() string {
	return fmt.Sprintf("building %s needs Go, but the go command was not found on PATH (%v); "+
		"install Go from https://go.dev/dl, or set %s to the path of an existing %s",
		binaryName, e.Err, binaryEnv, binaryName)
}

func (e *NoGoError) Unwrap() error { return e.Err }

// pidSuffix is empty if the pid is unknown.
func pidSuffix(pid int) string {
	if pid <= 0 {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}
