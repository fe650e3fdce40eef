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

// foldable is how close together two writes of a controller have to be so that it would have made one of them, had it been
// a little slower.
const foldable = 100 * time.Millisecond

// Range is in which bounds a number of events is a matter of luck.
type Range struct {
	Least int `json:"least"`
	Most  int `json:"most"`
}

func (r Range) has(value int) bool { return r.Least <= value && value <= r.Most }

// String is one number if both bounds are the same.
func (r Range) String() string {
	if r.Least == r.Most {
		return strconv.Itoa(r.Least)
	}
	return fmt.Sprintf("%d–%d", r.Least, r.Most)
}

// possible says how many events the same change could have been on a server of the learner's time: fewer, if a controller
// writes once where it wrote twice in quick succession, and more, if pods that were counted together are counted one by one.
func possible(events []Event) (r Range) {
	var last []*Event // of each object
	for i := range events {
		e := &events[i]
		if e.isSince() {
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

// follows reports whether both events would be one, if their writer had been slower.
func (e *Event) follows(before *Event) bool {
	return e.isStatus() && before.isStatus() && e.Writers() == before.Writers() && e.Seen.Sub(before.Seen) < foldable
}

func (e *Event) isStatus() bool {
	return len(e.Changes) > 0 && !slices.ContainsFunc(e.Changes, func(c why.Change) bool { return !strings.HasPrefix(c.Path, "status.") })
}

// steps is how many events it could have been: one for each pod that was counted, unless they come from one write of one number.
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
