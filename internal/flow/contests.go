// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
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
	// contestWithin is how soon a field must be set again to count as a reaction to our correction.
	contestWithin = 10 * time.Second
	// firstTruce and lastTruce bound the pauses between repairs in a contest.
	firstTruce = 15 * time.Second
	lastTruce  = 5 * time.Minute
)

// contests detects other controllers that revert our corrections, and prevents an endless fight: such a child is
// corrected less and less often, and the status of its owner contains the reason.
type contests struct {
	mutex    sync.Mutex
	children map[types.UID]*contest
}

type contest struct {
	// signature identifies the last correction, with its time and how often in a row it was made.
	signature string
	last      time.Time
	rounds    int
	// truce is how long we wait before the next repair; 0 if there is no contest.
	truce time.Duration
	// within is how soon the next correction must be needed to count as one in a row.
	within time.Duration
}

func (c *contest) isOver(now time.Time) bool { return now.Sub(c.last) > max(c.within, 2*c.truce) }

// note is called before a child is corrected. The error is the outcome if the correction has to wait.
func (c *contests) note(child types.UID, name, signature, fields string, now time.Time) error {
	return c.noteWithin(contestWithin, child, name, signature, fields, now)
}

// noteWithin is note for corrections that take so long that a reaction to them comes later than usual.
func (c *contests) noteWithin(within time.Duration, child types.UID, name, signature, fields string, now time.Time) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.children == nil {
		c.children = map[types.UID]*contest{}
	}
	known := c.children[child]
	if known == nil || known.signature != signature || known.isOver(now) {
		c.children[child] = &contest{signature: signature, last: now, rounds: 1, within: within}
		return nil
	}
	if known.rounds < contestAfter {
		known.rounds++
		known.last = now
		return nil
	}
	if known.truce == 0 {
		known.truce = firstTruce
	}
	if wait := known.last.Add(known.truce).Sub(now); wait > 0 {
		return Within(wait, Stalled(ReasonContested, fmt.Errorf(
			"%s is changed again after each correction, %d times so far: %s; stop that writer, or configure it to leave these fields alone",
			name, known.rounds, fields)))
	}
	known.rounds++
	known.last = now
	known.truce = min(2*known.truce, lastTruce)
	return nil
}

// settled is called when a child matches its configuration. A contest is over when it matches for longer than a
// truce.
func (c *contests) settled(child types.UID, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.children[child]; known != nil && known.isOver(now) {
		delete(c.children, child)
	}
}

// forget drops the state of a deleted child.
func (c *contests) forget(child types.UID) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.children, child)
}
