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
	// ReasonReady means that the object matches its spec.
	ReasonReady = "Ready"

	// ReasonSuspended means that spec.suspend is set.
	ReasonSuspended = "Suspended"

	// ReasonRetrying means that something failed and is tried again.
	ReasonRetrying = "Retrying"

	// ReasonSynced is the reason of events about changes that the controller made.
	ReasonSynced = "Synced"

	// ReasonDriftCorrected is the reason of events about corrected drift of children.
	ReasonDriftCorrected = "DriftCorrected"

	// ReasonResourceExists means that a child's name is taken by an object that the custom resource does not control.
	ReasonResourceExists = "ErrResourceExists"
)

// waiting is an outcome: the object makes progress, and there is nothing to do until something else happens.
type waiting struct {
	reason, message string
	after           time.Duration
}

func (w *waiting) Error() string { return w.message }

// Waiting means that the object is not ready yet and that nothing is wrong. A watch reports the awaited change.
func Waiting(reason, format string, args ...any) error {
	return &waiting{reason: reason, message: fmt.Sprintf(format, args...)}
}

// WaitingFor is like Waiting, but requeues the object after a time.
func WaitingFor(after time.Duration, reason, format string, args ...any) error {
	return &waiting{reason: reason, message: fmt.Sprintf(format, args...), after: after}
}

// stalled is an outcome: the object makes no progress until something is changed.
type stalled struct {
	reason string
	err    error
	retry  bool
	after  time.Duration
}

func (s *stalled) Error() string { return s.err.Error() }
func (s *stalled) Unwrap() error { return s.err }

// Stalled means that there is no progress until a watched object changes. The user sees the error's text.
func Stalled(reason string, err error) error { return &stalled{reason: reason, err: err} }

// StalledRetrying is like Stalled for obstacles that cannot be watched, such as a quota: it is retried with back-off.
func StalledRetrying(reason string, err error) error {
	return &stalled{reason: reason, err: err, retry: true}
}

// Within makes an outcome that waits or is stalled requeue after a time at the latest. Other outcomes stay unchanged.
func Within(after time.Duration, err error) error {
	var (
		wait  *waiting
		stall *stalled
	)
	switch {
	case after <= 0:
		return err
	case errors.As(err, &wait) && (wait.after == 0 || after < wait.after):
		return &waiting{reason: wait.reason, message: wait.message, after: after}
	case errors.As(err, &stall) && (stall.after == 0 || after < stall.after):
		return &stalled{reason: stall.reason, err: stall.err, retry: stall.retry, after: after}
	default:
		return err
	}
}

// hold is an outcome: nothing is to be written now.
type hold struct{ after time.Duration }

func (h *hold) Error() string { return fmt.Sprintf("held for %v", h.after) }

// Hold keeps the status unchanged and requeues the object.
func Hold(after time.Duration) error { return &hold{after: after} }

// Reason returns the reason that an outcome gives, and "" if it is none that has one.
func Reason(err error) string {
	var (
		wait  *waiting
		stall *stalled
	)
	switch {
	case errors.As(err, &wait):
		return wait.reason
	case errors.As(err, &stall):
		return stall.reason
	default:
		return ""
	}
}

// ComesBack returns when an outcome requeues the object without an event: the delay, and whether it retries with
// back-off. Both are zero if watches report everything that the outcome waits for.
func ComesBack(err error) (after time.Duration, retrying bool) {
	var (
		wait  *waiting
		stall *stalled
	)
	switch {
	case errors.As(err, &wait):
		return wait.after, false
	case errors.As(err, &stall):
		return stall.after, stall.retry
	default:
		return 0, false
	}
}

// IsStalled reports whether an outcome is Stalled.
func IsStalled(err error) bool { return outcomeOf(err) == outcomeStalled }

// IsWaiting reports whether an outcome is Waiting.
func IsWaiting(err error) bool { return outcomeOf(err) == outcomeWaiting }

// outcome is how a pass went, for metrics.
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
