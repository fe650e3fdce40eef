// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/why"
)

// foldable is the maximum time between two writes of a controller that a slightly slower controller would have
// combined.
const foldable = 100 * time.Millisecond

// Range holds the minimum and the maximum number of events that a race allows.
type Range struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

func (r Range) has(value int) bool { return r.Least <= value && value <= r.Most }

// String returns one number if the minimum and the maximum are equal.
func (r Range) String() string {
	if r.Least == r.Most {
		return strconv.Itoa(r.Least)
	}
	return fmt.Sprintf("%d–%d", r.Least, r.Most)
}

// possible returns how many events the same change can trigger on a server of the learner's time. There are fewer if
// a controller combines two writes in quick succession, and more if it counts pods one by one instead of together.
func possible(events []Event) (r Range) {
	var last []*Event // the last event of each object
	for i := range events {
		e := &events[i]
		if e.onlyStoppingPods() {
			continue
		}
		r.Most += e.steps()
		index := slices.IndexFunc(last, func(before *Event) bool {
			return before.Object != nil && e.Object != nil && before.Object.UID == e.Object.UID
		})
		if index < 0 {
			last = append(last, e)
			r.Least++
			continue
		}
		if !e.follows(last[index]) {
			r.Least++
		}
		last[index] = e
	}
	return r
}

// follows reports whether a slower writer would have combined both events into one.
func (e *Event) follows(before *Event) bool {
	return e.isStatus() && before.isStatus() && e.Writers() == before.Writers() && e.Seen.Sub(before.Seen) < foldable
}

func (e *Event) isStatus() bool {
	return len(e.Changes) > 0 && !slices.ContainsFunc(e.Changes, func(c why.Change) bool { return !strings.HasPrefix(c.Path, "status.") })
}

// steps returns the maximum number of events that this one stands for: one for each counted pod, unless one write
// changed a single number.
func (e *Event) steps() int {
	steps := 0
	if e.changed("status.observedGeneration") != nil {
		steps++
	}
	size := func(path string) int {
		by := e.difference(path)
		return max(by, -by)
	}
	steps += size("status.replicas")
	if e.difference("status.readyReplicas") > 0 || e.difference("status.replicas") == 0 {
		steps += size("status.readyReplicas")
	}
	return max(steps, 1)
}
