// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/opdock/opdock/internal/flow"
)

func TestBatchesStopAtTheFirstFailure(t *testing.T) {
	failure := errors.New("out of room")
	taken := flow.Stalled(flow.ReasonResourceExists, errors.New("taken"))
	leaving := flow.Waiting(ReasonNameNotFree, "on its way out")
	for _, test := range []struct {
		name string
		// answers is what becomes of single pods, by their numbers; the others are fine.
		answers  map[int]error
		want     error
		attempts int32
	}{
		{"all is well", nil, nil, 20},
		{"the first fails", map[int]error{0: failure}, failure, 1},
		{"one of the third batch fails", map[int]error{4: failure}, failure, 1 + 2 + 4},
		{"a name is taken, which is about that name only", map[int]error{0: taken, 2: taken}, taken, 20},
		{"a name that will be free is less grave", map[int]error{0: taken, 2: leaving}, taken, 20},
		{"a failure is graver", map[int]error{0: taken, 8: failure}, failure, 1 + 2 + 4 + 8},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &scope{pass: &flow.Pass{}}
			for ordinal := range 20 {
				s.plan.actions = append(s.plan.actions, action{verb: create, ordinal: ordinal}, action{verb: label, ordinal: ordinal})
			}
			var attempts atomic.Int32
			phase := (&Reconciler{}).each(create, func(_ context.Context, _ *scope, a action) outcome {
				attempts.Add(1)
				if err := test.answers[a.ordinal]; err != nil {
					return outcome{err: err, taken: err != failure} //nolint:errorlint // it is the very same
				}
				return outcome{member: &member{ordinal: a.ordinal}}
			})
			if err := phase(t.Context(), s); !errors.Is(err, test.want) {
				t.Errorf("the outcome is %v, not %v", err, test.want)
			}
			if got := attempts.Load(); got != test.attempts {
				t.Errorf("%d attempts, not %d", got, test.attempts)
			}
			if got := len(s.world.members); got != int(test.attempts)-len(test.answers) {
				t.Errorf("%d pods are known", got)
			}
		})
	}
}

func TestAPassHasAnEnd(t *testing.T) {
	const pods = 3 * mostPerPass
	s := &scope{pass: &flow.Pass{}}
	for ordinal := range pods {
		s.plan.actions = append(s.plan.actions, action{verb: create, ordinal: ordinal})
	}
	phase := (&Reconciler{}).each(create, func(_ context.Context, _ *scope, a action) outcome {
		return outcome{member: &member{ordinal: a.ordinal}}
	})
	if err := phase(t.Context(), s); !flow.IsWaiting(err) || !s.hindered {
		t.Errorf("the outcome is %v", err)
	}
	if got := len(s.world.members); got < mostPerPass || got > mostPerPass+largestBatch {
		t.Errorf("%d pods were created", got)
	}

	// Names that are taken are no progress, so they must not bring the next pass about.
	attempts := atomic.Int32{}
	phase = (&Reconciler{}).each(create, func(context.Context, *scope, action) outcome {
		attempts.Add(1)
		return outcome{err: flow.Stalled(flow.ReasonResourceExists, errors.New("taken")), taken: true}
	})
	if err := phase(t.Context(), s); !flow.IsStalled(err) || attempts.Load() != pods {
		t.Errorf("the outcome after %d attempts is %v", attempts.Load(), err)
	}
}
