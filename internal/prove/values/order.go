// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"cmp"
	"encoding/json"
	"fmt"
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
	sort         sort
	// property is the path of what changes, which may be in a block that is added with it, and why describes the value alone.
	property []string
	why      string
	// key identifies the property.
	key string
	// round counts the candidates of the same property and group, so that each property comes once before any comes
	// twice. turn counts those of the same group, round and sort.
	round, turn int
	tie         uint64
}

// sort is what kind of property a candidate changes. Sorts take turns: a sample rarely has all that users set, and those
// that it has are rarely the ones that matter most.
type sort int

const (
	sortPresent  sort = iota // the object has it
	sortTelling              // what its values mean is known, such as labels, tolerations and switches
	sortPossible             // all others
)

// order sorts candidates: by group, properties in turns, sorts in turns, those near the root first.
func order(candidates []candidate, seed int64) []candidate {
	rounds, names, turns := counter{}, counter{}, counter{}
	for at := range candidates {
		c := &candidates[at]
		c.round = rounds.next(c.key, c.group)
		if seed != 0 {
			c.tie = hash(seed, c)
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(len(a.property), len(b.property)), cmp.Compare(a.tie, b.tie), cmp.Compare(a.key, b.key))
	})
	// Among components with the same properties, each property comes once before it comes for the next component.
	for at := range candidates {
		c := &candidates[at]
		c.turn = names.next(c.group, c.round, c.sort, lastName(c.property))
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.turn, b.turn) })
	for at := range candidates {
		c := &candidates[at]
		c.turn = turns.next(c.group, c.round, c.sort)
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.round, b.round), cmp.Compare(a.turn, b.turn), cmp.Compare(a.sort, b.sort))
	})
	return candidates
}

// counter counts what has some things in common.
type counter map[string]int

func (n counter) next(common ...any) int {
	key := fmt.Sprintf("%q", common)
	n[key]++
	return n[key] - 1
}

// lastName returns the name of a property, which a list gives to its elements.
func lastName(path []string) string {
	for _, segment := range slices.Backward(path) {
		if _, err := strconv.Atoi(segment); err != nil {
			return segment
		}
	}
	return ""
}

func hash(seed int64, c *candidate) uint64 {
	sum := fnv.New64a()
	raw, _ := json.Marshal(c.alternatives)
	// A hash never fails to be written to.
	_, _ = sum.Write([]byte(strconv.FormatInt(seed, 10) + "\x00" + c.key + "\x00" + c.change.Why + "\x00" + string(raw)))
	return sum.Sum64()
}

// choose returns the possible changes, at most as many as are wanted, groups in turns, each in the order of the candidates.
// Each group gets its share first; what is left goes to the groups in their order.
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
	return inTurns(chosen)
}

// inTurns merges the changes of all groups, so that the first few have one of each group and later ones come by their shares:
// most campaigns end before the last change.
func inTurns(chosen [groups][]Change) []Change {
	type place struct {
		change Change
		at     float64
	}
	var places []place
	for g, changes := range chosen {
		for i, change := range changes {
			places = append(places, place{change, float64(i) / float64(share[g])})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	merged := make([]Change, 0, len(places))
	for _, one := range places {
		merged = append(merged, one.change)
	}
	return merged
}

// decide returns the first possible form of a change: with what it switches on or, if that is impossible, without.
func decide(c candidate, j *judge) (Change, bool) {
	for _, value := range c.alternatives {
		change := c.change
		change.Value, change.Property = normalize(value), c.property
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
