// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
)

// Phase is a step of a reconcile. It stores its results in the scope.
type Phase[S any] func(ctx context.Context, scope S) error

// Run runs the phases in their order and stops at the first that does not return nil.
func Run[S any](ctx context.Context, scope S, phases ...Phase[S]) error {
	for _, phase := range phases {
		if err := phase(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}

// RunAll runs all phases, whatever the others return, and returns the most severe outcome: a failure before
// Stalled before Waiting. It is for independent phases, which must not block each other.
func RunAll[S any](ctx context.Context, scope S, phases ...Phase[S]) error {
	var gravest error
	for _, phase := range phases {
		gravest = graver(gravest, phase(ctx, scope))
	}
	return gravest
}

// graver returns the graver of two outcomes, and both if they are failures. It comes back as early as the other one has to,
// because no event may do that: while a child is contested, for example, nothing changes.
func graver(a, b error) error {
	switch gravityA, gravityB := gravity(a), gravity(b); {
	case gravityA == gravity(errFailure) && gravityB == gravityA:
		return errors.Join(a, b)
	case gravityB > gravityA:
		return AsEarlyAs(a, b)
	default:
		return AsEarlyAs(b, a)
	}
}

// AsEarlyAs returns an outcome that also requeues the object when another one has to.
func AsEarlyAs(other, outcome error) error {
	after, retrying := ComesBack(other)
	var stall *stalled
	if retrying && errors.As(outcome, &stall) && !stall.retry {
		outcome = &stalled{reason: stall.reason, err: stall.err, retry: true, after: stall.after}
	}
	return Within(after, outcome)
}

var errFailure = errors.New("any failure")

func gravity(err error) int {
	switch outcomeOf(err) {
	case outcomeFailed:
		return 4
	case outcomeStalled:
		return 3
	case outcomeWaiting:
		return 2
	case outcomeHeld:
		return 1
	default:
		return 0
	}
}
