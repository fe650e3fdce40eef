// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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
		if result, nextErr := reconciler.next(t.Context(), &corev1.ConfigMap{}, err); nextErr != nil || result.RequeueAfter != test.want {
			t.Errorf("%s: back after %v (%v), not %v", test.name, result.RequeueAfter, nextErr, test.want)
		}
	}
	if err := Within(time.Second, failure); err != failure { //nolint:errorlint // it must be the very same
		t.Errorf("a failure has become %v", err)
	}
}

// The end of a truce is not missed because something else is retried less and less often.
func TestARetryDoesNotDelayTheEndOfATruce(t *testing.T) {
	for name, test := range map[string]struct {
		outcome error
		want    time.Duration
	}{
		"no truce": {StalledRetrying("A", errors.New("refused")), 0},
		"a truce":  {Within(time.Second, StalledRetrying("A", errors.New("refused"))), time.Second},
	} {
		queue := &delays{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()), make(chan time.Duration, 1)}
		reconciler := &Reconciler[*corev1.ConfigMap]{bystanders: &bystanders{queue: queue}}
		result, err := reconciler.next(t.Context(), &corev1.ConfigMap{}, test.outcome)
		if err == nil || result.RequeueAfter != 0 {
			t.Errorf("%s: it is not retried: %+v", name, result)
		}
		queue.ShutDown()
		close(queue.added)
		if after := <-queue.added; after != test.want {
			t.Errorf("%s: back after %v", name, after)
		}
	}
}
