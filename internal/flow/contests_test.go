// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
)

var web = childOf{owner: "uid", child: "Deployment web"}

// attempt makes a write unless it has to wait.
func (c *contests) attempt(write repetition, now time.Time) (wait time.Duration, rounds int) {
	if wait, rounds = c.wait(write, now); wait == 0 {
		c.count(write, contestWithin, now)
	}
	return wait, rounds
}

func TestContest(t *testing.T) {
	var c contests
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	repair := func(after time.Duration) error {
		now = now.Add(after)
		wait, rounds := c.attempt(repetition{childOf: web, hash: "hash", signature: "spec.replicas"}, now)
		if wait > 0 {
			return contested("Deployment web", "spec.replicas was changed by rival", wait, rounds)
		}
		return nil
	}
	const moment = 100 * time.Millisecond
	for range contestAfter {
		if err := repair(moment); err != nil {
			t.Fatalf("not contested yet: %v", err)
		}
	}
	err := repair(moment)
	if Reason(err) != ReasonContested || !IsStalled(err) || !strings.Contains(err.Error(), "spec.replicas was changed by rival") {
		t.Fatalf("got %v", err)
	}
	// Within the truce nothing is written, even after many reconciles.
	if err := repair(firstTruce - 2*moment); Reason(err) != ReasonContested {
		t.Fatalf("got %v", err)
	}
	if err := repair(moment); err != nil {
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
	now = now.Add(2*lastTruce + time.Second)
	if err := repair(time.Second); err != nil || c.children[web].writes["spec.replicas"].rounds != 1 {
		t.Fatalf("it is over: %v", err)
	}
}

// A script edits whatever it likes, some fields more often than others, as soon as the edit before is corrected.
func TestEditsAtRandomAreNoContest(t *testing.T) {
	for name, often := range map[string]int{"one field in a quarter of the edits": 1, "two fields in half of them": 2, "three fields in three quarters": 3} {
		t.Run(name, func(t *testing.T) {
			const edits, scripts = 500, 20
			waited := 0
			for script := range scripts {
				var c contests
				now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				random := rand.New(rand.NewPCG(1, uint64(script)))
				for edit := range edits {
					now = now.Add(300 * time.Millisecond)
					field := "rare" + strconv.Itoa(edit)
					if choice := random.IntN(4); choice < often {
						field = "often" + strconv.Itoa(choice)
					}
					wait, _ := c.wait(repetition{childOf: web, hash: "hash", signature: field}, now)
					if wait > 0 {
						waited++
					}
					if wait > firstTruce {
						t.Fatalf("edit %d waits for %v", edit, wait)
					}
					now = now.Add(wait)
					c.count(repetition{childOf: web, hash: "hash", signature: field}, contestWithin, now)
				}
			}
			if waited > scripts*edits/1000 {
				t.Errorf("%d of %d edits waited", waited, scripts*edits)
			}
		})
	}
}

// A script scales at random. A controller that sets another number each time is only found out later.
func TestContestWithChangingValues(t *testing.T) {
	var c contests
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	write := repetition{childOf: web, hash: "hash", signature: "spec.replicas"}
	attempt := func(values string) (wait time.Duration) {
		write.values = values
		now = now.Add(time.Millisecond)
		wait, _ = c.attempt(write, now)
		return wait
	}
	for round := range 3 * contestAfter {
		if wait := attempt(strconv.Itoa(round % 5)); wait > 0 {
			t.Fatalf("round %d waits for %v", round, wait)
		}
	}
	for round := range contestAfter {
		if wait := attempt("7"); wait > 0 {
			t.Fatalf("round %d with the same number waits for %v", round, wait)
		}
	}
	if wait := attempt("7"); wait == 0 {
		t.Error("the same number again and again is no contest")
	}
	if wait := attempt("8"); wait > 0 {
		t.Errorf("another number waits for %v", wait)
	}
	for round := 0; attempt(strconv.Itoa(round)) == 0; round++ {
		if round > contestAfterAny {
			t.Fatal("other numbers again and again are no contest")
		}
	}
}

// Two writers of different fields take turns, and write both now and then.
func TestContestWithTwoRivals(t *testing.T) {
	var c contests
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	written := 0
	for round := range 20 * contestAfter {
		now = now.Add(time.Millisecond)
		if wait, _ := c.attempt(repetition{childOf: web, hash: "hash", signature: []string{"a", "b", "a\nb"}[round%3]}, now); wait == 0 {
			written++
		}
	}
	if written != 3*contestAfter {
		t.Errorf("there were %d writes", written)
	}
}

func TestNoContest(t *testing.T) {
	for name, test := range map[string]struct {
		write func(round int) repetition
		pause time.Duration
	}{
		"other fields": {func(round int) repetition {
			return repetition{childOf: web, hash: "hash", signature: strconv.Itoa(round)}
		}, time.Millisecond},
		"other configurations": {func(round int) repetition { return repetition{childOf: web, hash: strconv.Itoa(round), signature: ""} }, time.Millisecond},
		"two configurations": {func(round int) repetition {
			return repetition{childOf: web, hash: strconv.Itoa(round % 2), signature: ""}
		}, time.Millisecond},
		"other children": {func(round int) repetition {
			return repetition{childOf: childOf{owner: "uid", child: strconv.Itoa(round)}, hash: "hash"}
		}, time.Millisecond},
		"a person, now and again": {func(int) repetition { return repetition{childOf: web, hash: "hash", signature: "spec.replicas"} }, contestWithin + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var c contests
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for round := range 5 * contestAfter {
				now = now.Add(test.pause)
				if wait, _ := c.attempt(test.write(round), now); wait > 0 {
					t.Fatalf("round %d waits for %v", round, wait)
				}
			}
			c.attempt(repetition{childOf: childOf{owner: "uid", child: "another"}, hash: "hash"}, now.Add(2*contestWithin))
			if len(c.children) != 1 {
				t.Errorf("%d are still counted", len(c.children))
			}
		})
	}
}
