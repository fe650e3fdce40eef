// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ReasonContested means that another writer sets a field of a child again whenever it is corrected.
const ReasonContested = "FieldContested"

const (
	// contestAfter is how many times in a row the same fields are corrected before it counts as a contest. A person
	// never comes close to it.
	contestAfter = 8
	// contestWithin is how soon a field must usually be set again to count as a reaction to our correction.
	contestWithin = 10 * time.Second
	// firstTruce and lastTruce bound the pauses between repairs in a contest.
	firstTruce = 15 * time.Second
	lastTruce  = 5 * time.Minute
)

// contests detects other controllers that revert our corrections, and prevents an endless fight: such a child is
// corrected less and less often, and the status of its owner contains the reason.
//
// Every write to an existing child counts, whatever the writer has changed, because it may also remove what tells that the
// configuration has not changed. Each set of fields has its own count, so several writers do not hide each other. The
// counts of a child are not dropped with it: for a cache, a child whose label is removed is deleted.
type contests struct {
	mutex  sync.Mutex
	writes map[repetition]*contest
	// swept is when the counts that are over were last dropped.
	swept time.Time
}

// repetition identifies a write: the same configuration for the same child, because of the same fields.
type repetition struct {
	child           types.UID
	hash, signature string
}

type contest struct {
	// last is the time of the last write, and rounds how often in a row it was made.
	last   time.Time
	rounds int
	// truce is how long we wait before the next repair; 0 if there is no contest.
	truce time.Duration
	// within is how soon the next write must be needed to count as one in a row.
	within time.Duration
}

// isOver reports whether the child has matched its configuration for longer than a truce.
func (c *contest) isOver(now time.Time) bool { return now.Sub(c.last) > max(c.within, 2*c.truce) }

// wait returns how long a write to an existing child has to wait, which is 0 unless there is a contest, and how often in a
// row it was made.
func (c *contests) wait(write repetition, now time.Time) (wait time.Duration, rounds int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	known := c.writes[write]
	if known == nil || known.isOver(now) || known.rounds < contestAfter {
		return 0, 0
	}
	if known.truce == 0 {
		known.truce = firstTruce
	}
	return max(0, known.last.Add(known.truce).Sub(now)), known.rounds
}

// count is called after such a write. One that the server has refused does not count. within is how soon the next one must be needed to
// count as a reaction to it.
func (c *contests) count(write repetition, within time.Duration, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.writes == nil {
		c.writes = map[repetition]*contest{}
	}
	// Another configuration is our own wish, and no reaction of a rival: it ends what was counted for the one before, so
	// that two which take turns are no contest.
	maps.DeleteFunc(c.writes, func(other repetition, _ *contest) bool { return other.child == write.child && other.hash != write.hash })
	if now.Sub(c.swept) > contestWithin {
		c.swept = now
		maps.DeleteFunc(c.writes, func(_ repetition, known *contest) bool { return known.isOver(now) })
	}
	known := c.writes[write]
	if known == nil || known.isOver(now) {
		known = &contest{within: within}
		c.writes[write] = known
	}
	known.rounds++
	known.last = now
	known.truce = min(2*known.truce, lastTruce)
}

// contested is the outcome while a write waits.
func contested(name, fields string, wait time.Duration, rounds int) error {
	return Within(wait, Stalled(ReasonContested, fmt.Errorf(
		"%s is changed again after each correction, %d times so far: %s; stop that writer, or configure it to leave these fields alone",
		name, rounds, fields)))
}
