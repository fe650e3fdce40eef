// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// missing says, for an event, which injected items admission has not added again.
func (p *Pass) missing(object client.Object, desired *desired, injected *fieldpath.Set) string {
	if injected == nil || injected.Empty() {
		return ""
	}
	var names []string
	for _, path := range topmost(injected.Difference(p.shapes.fieldsOf(contentOf(object, desired)))) {
		names = append(names, fieldText(path))
	}
	if len(names) == 0 {
		return ""
	}
	return "; admission did not add " + strings.Join(names, ", ") + " again"
}

// injectedItems returns the items that have added fields, but that are neither in the configuration nor owned by a manager as items.
func (o ownership) injectedItems(expected *fieldpath.Set, added []manager) *fieldpath.Set {
	items := &fieldpath.Set{}
	isOwned := func(item fieldpath.Path) bool {
		return o.ours != nil && o.ours.Has(item) || slices.ContainsFunc(o.others, func(m manager) bool { return m.fields.Has(item) })
	}
	for _, other := range added {
		for path := range other.fields.All() {
			for end := 1; end < len(path); end++ {
				if item := path[:end]; path[end-1].Key != nil && !expected.Has(item) && !isOwned(item) {
					items.Insert(slices.Clone(item))
					break
				}
			}
		}
	}
	return items
}

// releasedItems returns the items that are ours, but not in the configuration, and in which nothing is ours. Whoever adds an item
// also owns its keys, so these are items of admission, which an earlier correction has taken over.
func releasedItems(ours, expected *fieldpath.Set) *fieldpath.Set {
	items := &fieldpath.Set{}
	for path := range ours.All() {
		if path[len(path)-1].Key != nil && !expected.Has(path) && !hasBelow(ours, path) {
			items.Insert(slices.Clone(path))
		}
	}
	return items
}
