// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"cmp"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strconv"
)

// group is the first criterion of the order.
type group int

const (
	groupScaleUp group = iota
	groupScaleDown
	groupImage
	groupRemoval
	groupOther
	groupLimit
	groupMisuse
	groups
)

// share is the part of all changes that a group may use before others had their turn, in percent.
var share = [groups]int{5, 5, 5, 15, 25, 20, 25}

// candidate is a change that may turn out to be impossible.
type candidate struct {
	change Change
	// alternatives are values, of which the first possible one is used.
	alternatives []any
	group        group
	present      bool
	// property is the path of what changes, which may be in a block that is added with it, and why describes the value alone.
	property []string
	why      string
	// key identifies the property.
	key string
	// round counts the candidates of the same property and group, so that each property comes once before any comes
	// twice.
	round int
	tie   uint64
}

// order sorts candidates: by group, properties in turns, those that the object has first, then those near the root.
func order(candidates []candidate, seed int64) []candidate {
	type turn struct {
		key   string
		group group
	}
	rounds := map[turn]int{}
	for at := range candidates {
		c := &candidates[at]
		c.round = rounds[turn{c.key, c.group}]
		rounds[turn{c.key, c.group}]++
		if seed != 0 {
			c.tie = hash(seed, c)
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.group, b.group), cmp.Compare(a.round, b.round), -compareBool(a.present, b.present),
			cmp.Compare(len(a.property), len(b.property)), cmp.Compare(a.tie, b.tie), cmp.Compare(a.key, b.key),
		)
	})
	return candidates
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

func hash(seed int64, c *candidate) uint64 {
	sum := fnv.New64a()
	raw, _ := json.Marshal(c.alternatives)
	// A hash never fails to be written to.
	_, _ = sum.Write([]byte(strconv.FormatInt(seed, 10) + "\x00" + c.key + "\x00" + c.change.Why + "\x00" + string(raw)))
	return sum.Sum64()
}

// choose returns the possible changes, at most as many as are wanted, in the order of the candidates. Each group gets its
// share first; what is left goes to the groups in their order.
func choose(candidates []candidate, j *judge, most int) []Change {
	var waiting [groups][]candidate
	for _, c := range candidates {
		waiting[c.group] = append(waiting[c.group], c)
	}
	var chosen [groups][]Change
	total := 0
	take := func(g group, limit int) {
		for len(waiting[g]) > 0 && len(chosen[g]) < limit && total < most {
			next := waiting[g][0]
			waiting[g] = waiting[g][1:]
			if change, ok := decide(next, j); ok {
				chosen[g] = append(chosen[g], change)
				total++
			}
		}
	}
	for g := range groups {
		take(g, max(1, most*share[g]/100))
	}
	for g := range groups {
		take(g, most)
	}
	return slices.Concat(chosen[:]...)
}

// decide returns the first possible form of a change: with what it switches on or, if that is impossible, without.
func decide(c candidate, j *judge) (Change, bool) {
	for _, value := range c.alternatives {
		change := c.change
		change.Value = normalize(value)
		said := j.of(change)
		if said == impossible && len(change.Also) > 0 {
			change.Also = nil
			said = j.of(change)
		}
		if said == possible {
			return change, true
		}
	}
	return Change{}, false
}
