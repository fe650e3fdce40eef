// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// secondWriters are those who may have written once more within the second in which they had written before: what they write
// is theirs, and nobody has written later. It is called for the few events that change no entry's time, because it has to
// read which fields entries are about, as far as the cache has kept that.
func secondWriters(entries []metav1.ManagedFieldsEntry, found *comparison, seen time.Time) (writers []Writer) {
	candidates := newestEntries(entries, seen)
	if len(candidates) == 0 || slices.ContainsFunc(found.changes, leavesNoTrace) {
		return nil
	}
	for i := range found.changes {
		owner := ownerOf(candidates, found.changes[i].Path, found.given&(1<<i) != 0)
		if owner != nil && !slices.Contains(writers, writer(owner.entry)) {
			writers = append(writers, writer(owner.entry))
		}
	}
	return writers
}

// leavesNoTrace says whether a change is one of those that are not in managed fields at all: what a deletion does, and the
// binding of a pod. What else such an event changes has been changed by the same.
func leavesNoTrace(c Change) bool {
	return isWithin(c.Path, "metadata.deletionTimestamp") || isWithin(c.Path, "metadata.deletionGracePeriodSeconds") || c.Path == "spec.nodeName"
}

// candidate is an entry whose fields, if they are known, are read once.
type candidate struct {
	entry  *metav1.ManagedFieldsEntry
	fields *fieldpath.Set
}

// newestEntries are those of the last second in which somebody wrote, if that can be the one of an event: a write that
// leaves its trace has that time, and events come soon after it.
func newestEntries(entries []metav1.ManagedFieldsEntry, seen time.Time) (newest []candidate) {
	const soon = 5 * time.Second
	var last time.Time
	for i := range entries {
		if at := entries[i].Time; at != nil && at.After(last) {
			last = at.Time
		}
	}
	if last.IsZero() || seen.Sub(last).Abs() > soon {
		return nil
	}
	for i := range entries {
		e := &entries[i]
		if e.Time == nil || !e.Time.Time.Equal(last) || isBookkeeping(e) {
			continue
		}
		c := candidate{entry: e}
		if e.FieldsV1 != nil {
			fields := &fieldpath.Set{}
			// What cannot be read is not known.
			if fields.FromJSON(e.FieldsV1.GetRawReader()) == nil {
				c.fields = fields.Leaves()
			}
		}
		newest = append(newest, c)
	}
	return newest
}

// ownerOf is the only candidate that can have changed a field; nil if there is none or more than one. Of a field that may be
// gone, only whoever has it for sure can have written it.
func ownerOf(candidates []candidate, path string, given bool) (owner *candidate) {
	wanted, ok := parsePath(path)
	if !ok {
		return nil
	}
	count := 0
	for i := range candidates {
		c := &candidates[i]
		switch c.owns(wanted, given) {
		case yes:
			return c // whoever changes a field takes it from all others
		case perhaps:
			if given {
				owner = c
				count++
			}
		case no:
		}
	}
	if count != 1 {
		return nil
	}
	return owner
}

type ownership int

const (
	no ownership = iota
	perhaps
	yes
)

func (c *candidate) owns(path []step, given bool) (best ownership) {
	if c.fields == nil {
		if (c.entry.Subresource == "status") == (path[0].name == "status") {
			return perhaps
		}
		return no
	}
	for field := range c.fields.All() {
		best = max(best, matches(field, path, given))
	}
	return best
}

// matches says whether a field is the one at a path, or a part of it, or is perhaps one that it is a part of.
func matches(field fieldpath.Path, path []step, given bool) ownership {
	result := yes
	for i := range min(len(field), len(path)) {
		result = min(result, sameStep(&field[i], &path[i]))
	}
	switch {
	case len(field) < len(path):
		// Lists and maps can be owned as a whole; but an owner of one who has no part of it looks the same.
		result = min(result, perhaps)
	case len(field) > len(path) && !given:
		result = min(result, perhaps) // what is left of it
	}
	return result
}

func sameStep(element *fieldpath.PathElement, s *step) ownership {
	switch {
	case element.FieldName != nil:
		if s.kind == stepField && *element.FieldName == s.name {
			return yes
		}
		return no
	case element.Key != nil && s.kind == stepElement:
		for _, key := range *element.Key {
			if key.Name != s.key {
				continue
			}
			if fmt.Sprint(key.Value.Unstructured()) == s.value {
				return yes
			}
			return no
		}
		return perhaps // the list goes by another key
	default:
		return perhaps
	}
}

// parsePath reads what renderPath has written. Names that could be read in two ways are not read at all.
func parsePath(path string) (steps []step, ok bool) {
	if strings.Contains(path, "…") {
		return nil, false
	}
	for path != "" {
		if inner, found := strings.CutPrefix(path, "["); found {
			name, rest, closed := strings.Cut(inner, "]")
			if !closed || rest != "" && rest[0] != '.' && rest[0] != '[' {
				return nil, false
			}
			key, value, isElement := strings.Cut(name, "=")
			if isElement {
				steps = append(steps, step{kind: stepElement, key: key, value: value})
			} else {
				// It may be an index, which is the name of no field.
				steps = append(steps, step{name: name})
			}
			path = rest
			continue
		}
		path = strings.TrimPrefix(path, ".")
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		steps = append(steps, step{name: path[:end]})
		path = path[end:]
	}
	return steps, len(steps) > 0
}
