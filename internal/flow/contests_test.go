// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"
	"testing"
	"time"
)

func TestContest(t *testing.T) {
	var c contests
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	repair := func(after time.Duration) error {
		now = now.Add(after)
		return c.note("uid", "Deployment web", "spec.replicas", "spec.replicas was changed by rival", now)
	}
	for range contestAfter {
		if err := repair(time.Second); err != nil {
			t.Fatalf("not contested yet: %v", err)
		}
	}
	err := repair(time.Second)
	if Reason(err) != ReasonContested || !IsStalled(err) || !strings.Contains(err.Error(), "spec.replicas was changed by rival") {
		t.Fatalf("got %v", err)
	}
	// Within the truce nothing is written, even after many reconciles.
	if err := repair(firstTruce - 2*time.Second); Reason(err) != ReasonContested {
		t.Fatalf("got %v", err)
	}
	if err := repair(time.Second); err != nil {
		t.Fatalf("the truce is over: %v", err)
	}
	// The next truce is longer.
	if err := repair(firstTruce); Reason(err) != ReasonContested {
		t.Fatalf("got %v", err)
	}
	if err := repair(firstTruce); err != nil {
		t.Fatalf("the second truce is over: %v", err)
	}
	// A rival that has given up is forgotten.
	c.settled("uid", now.Add(2*lastTruce+time.Second))
	now = now.Add(2*lastTruce + time.Second)
	if err := repair(time.Second); err != nil {
		t.Fatalf("it is over: %v", err)
	}
}

func TestNoContest(t *testing.T) {
	for name, test := range map[string]struct {
		signature func(round int) string
		pause     time.Duration
	}{
		"other fields":           {func(round int) string { return strings.Repeat("x", round%2) }, time.Millisecond},
		"a person, now and then": {func(int) string { return "spec.replicas" }, contestWithin + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var c contests
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for round := range 5 * contestAfter {
				now = now.Add(test.pause)
				if err := c.note("uid", "Deployment web", test.signature(round), "", now); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		})
	}
}
