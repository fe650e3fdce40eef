// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

// counted holds the learner's notes: how many events each change triggered, by the number of containers in each pod.
// The notes say that a change of the strategy has the same count in both directions, and the same count with four
// replicas as with two.
var counted = map[int]map[string]int{
	4: {
		"delete-1": 2, "delete-2": 2,
		"scale-3-1": 4, "scale-1-3": 4, "scale-4-0": 4,
		"recreate-2": 2, "rollingupdate-2": 2, "recreate-4": 2, "rollingupdate-4": 2,
	},
	2: {
		"delete-1": 2, "delete-2": 2,
		"scale-3-1": 5, "scale-1-3": 5, "scale-3-4": 4, "scale-4-0": 5,
		"recreate-2": 2, "rollingupdate-2": 2, "recreate-4": 2, "rollingupdate-4": 2,
	},
}

// Counted returns the number that the learner noted for a change, or nil if there is none.
func Counted(change string, containers int) *int {
	if count, ok := counted[containers][change]; ok {
		return &count
	}
	return nil
}
