// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"slices"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
)

// occurrence is what happened to which kind of object.
type occurrence struct {
	kind string
	what collectorv1.EventType
}

// counts holds how often something has happened.
type counts map[occurrence]int64

// add adds the counts of a status.
func (c counts) add(events []collectorv1.EventCount) {
	for _, event := range events {
		c[occurrence{event.Kind, event.Type}] += event.Count
	}
}

// events returns the counts for the status, in a stable order.
func (c counts) events() []collectorv1.EventCount {
	var result []collectorv1.EventCount
	for occurrence, count := range c {
		result = append(result, collectorv1.EventCount{Kind: occurrence.kind, Type: occurrence.what, Count: count})
	}
	slices.SortFunc(result, func(a, b collectorv1.EventCount) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Type, b.Type))
	})
	return result
}
