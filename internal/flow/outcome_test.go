// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestWithin(t *testing.T) {
	failure := errors.New("failure")
	for _, test := range []struct {
		name  string
		err   error
		after time.Duration
		want  time.Duration
	}{
		{"ready", nil, time.Second, 0},
		{"waiting", Waiting("A", "b"), time.Second, time.Second},
		{"waiting for less", WaitingFor(time.Millisecond, "A", "b"), time.Second, time.Millisecond},
		{"waiting for more", WaitingFor(time.Minute, "A", "b"), time.Second, time.Second},
		{"stalled", Stalled("A", failure), time.Second, time.Second},
		{"no time", Stalled("A", failure), 0, 0},
	} {
		err := Within(test.after, test.err)
		if Reason(err) != Reason(test.err) || IsStalled(err) != IsStalled(test.err) || IsWaiting(err) != IsWaiting(test.err) {
			t.Errorf("%s: the outcome has become %v", test.name, err)
		}
		reconciler := &Reconciler[*corev1.ConfigMap]{}
		if result, nextErr := reconciler.next(t.Context(), err); nextErr != nil || result.RequeueAfter != test.want {
			t.Errorf("%s: back after %v (%v), not %v", test.name, result.RequeueAfter, nextErr, test.want)
		}
	}
	if err := Within(time.Second, failure); err != failure { //nolint:errorlint // it must be the very same
		t.Errorf("a failure has become %v", err)
	}
}
