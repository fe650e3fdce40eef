// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"fmt"
	"time"
)

// Reasons that conditions and events of every kind have.
const (
	// ReasonReady means that the object is as its spec says.
	ReasonReady = "Ready"

	// ReasonSuspended means that spec.suspend is set.
	ReasonSuspended = "Suspended"

	// ReasonRetrying means that something failed and is tried again.
	ReasonRetrying = "Retrying"

	// ReasonSynced is the reason of events about changes that the controller made.
	ReasonSynced = "Synced"

	// ReasonResourceExists means that a child's name is taken by an object of somebody else.
	ReasonResourceExists = "ErrResourceExists"
)

// waiting is an outcome: the work goes on, and there is nothing to do until something else happens.
type waiting struct {
	reason, message string
	after           time.Duration
}

func (w *waiting) Error() string { return w.message }

// Waiting says that the object is not ready yet and that nothing is wrong. What it waits for is watched.
func Waiting(reason, format string, args ...any) error {
	return &waiting{reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitingFor is Waiting where time itself is what has to pass.
func WaitingFor(after time.Duration, reason, format string, args ...any) error {
	return &waiting{reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// stalled is an outcome: no progress is to be expected until somebody changes something.
type stalled struct {
	reason string
	err    error
	retry  bool
}

func (s *stalled) Error() string { return s.err.Error() }
func (s *stalled) Unwrap() error { return s.err }

// Stalled says that somebody has to change something that is watched before there can be progress. The error's
// text is what that person reads.
func Stalled(reason string, err error) error { return &stalled{reason: reason, err: err} }

// StalledRetrying is Stalled where what has to change cannot be watched, such as a quota: it is tried again, less
// and less often.
func StalledRetrying(reason string, err error) error {
	return &stalled{reason: reason, err: err, retry: true}
}

// hold is an outcome: nothing is to be written now.
type hold struct{ after time.Duration }

func (h *hold) Error() string { return fmt.Sprintf("held for %v", h.after) }

// Hold leaves the status as it is and comes back later.
func Hold(after time.Duration) error { return &hold{after: after} }

// Outcome is how a pass went, for metrics.
type outcome string

const (
	outcomeReady     outcome = "ready"
	outcomeWaiting   outcome = "waiting"
	outcomeStalled   outcome = "stalled"
	outcomeHeld      outcome = "held"
	outcomeFailed    outcome = "failed"
	outcomeSuspended outcome = "suspended"
	outcomeDeleted   outcome = "deleted"
)

func outcomeOf(err error) outcome {
	switch {
	case err == nil:
		return outcomeReady
	case errors.As(err, new(*waiting)):
		return outcomeWaiting
	case errors.As(err, new(*stalled)):
		return outcomeStalled
	case errors.As(err, new(*hold)):
		return outcomeHeld
	default:
		return outcomeFailed
	}
}
