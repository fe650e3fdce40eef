// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opdock/opdock/why/diff"
)

// secondWriters returns the managers that may have written again within the second of their last write: they own the
// changed fields, and no manager has written later. It is called only for the few events that change no entry's time,
// because it has to parse the fields of entries, if the cache has kept them.
func secondWriters(entries []metav1.ManagedFieldsEntry, found *diff.Comparison, seen time.Time) (writers []Writer) {
	candidates := newestEntries(entries, seen)
	if len(candidates) == 0 {
		return nil
	}
	wanted := make([]wantedField, len(found.Changes))
	for i := range found.Changes {
		wanted[i] = wantedField{text: found.Changes[i].Path, given: found.Given&(1<<i) != 0}
	}
	for i := range candidates {
		candidates[i].look(wanted)
	}
	for i := range wanted {
		owner := ownerOf(candidates, i, wanted[i].given)
		if owner != nil && !slices.Contains(writers, writer(owner)) {
			writers = append(writers, writer(owner))
		}
	}
	return writers
}

// wantedField is a field whose owner is searched.
type wantedField struct {
	text  string
	given bool
	// path is nil until it is needed, or if it cannot be parsed.
	path []diff.Step
}

// root is the first step of its path.
func (w *wantedField) root() string {
	if end := strings.IndexAny(w.text, ".["); end >= 0 {
		return w.text[:end]
	}
	return w.text
}

// leavesNoTrace reports whether a change is not in managed fields at all: the effect of a deletion, and the binding
// of a pod. The same writer made the other changes of such an event.
func leavesNoTrace(c Change) bool {
	return diff.IsWithin(c.Path, "metadata.deletionTimestamp") || diff.IsWithin(c.Path, "metadata.deletionGracePeriodSeconds") || c.Path == "spec.nodeName"
}

// maxFields bounds the bytes of an entry's fields that are parsed, because parsing is slow. Larger entries count as
// unknown.
const maxFields = 16 << 10

// candidate is an entry that may be a writer's.
type candidate struct {
	entry *metav1.ManagedFieldsEntry
	// owns are the answers for each field that is wanted.
	owns []ownership
}

// newestEntries returns the entries of the last second with a write, if the event can belong to it: a write that
// leaves a trace has that time, and its event arrives soon after.
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
		newest = append(newest, candidate{entry: e})
	}
	return newest
}

// ownerOf returns the only manager that can have changed a field; nil if there is none or more than one. If the field
// may be removed, only a manager that certainly owns it can have written it.
func ownerOf(candidates []candidate, field int, given bool) (owner *metav1.ManagedFieldsEntry) {
	count := 0
	for i := range candidates {
		c := &candidates[i]
		switch c.owns[field] {
		case yes:
			return c.entry // a manager that changes a field takes it from all others
		case perhaps:
			if given {
				owner = c.entry
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

// look finds which of the wanted fields the entry owns, in one pass.
func (c *candidate) look(wanted []wantedField) {
	c.owns = make([]ownership, len(wanted))
	if c.entry.FieldsV1 != nil && !mentions(c.entry.FieldsV1.GetRawBytes(), wanted) {
		return
	}
	fields := readFields(c.entry.FieldsV1)
	if fields == nil {
		for i := range wanted {
			if (c.entry.Subresource == "status") == (wanted[i].root() == "status") {
				c.owns[i] = perhaps
			}
		}
		return
	}
	for i := range wanted {
		if wanted[i].path == nil {
			wanted[i].path, _ = diff.ParsePath(wanted[i].text)
		}
	}
	for field := range fields.Leaves().All() {
		for i := range wanted {
			if c.owns[i] != yes && wanted[i].path != nil {
				c.owns[i] = max(c.owns[i], matches(field, wanted[i].path, wanted[i].given))
			}
		}
	}
}

// mentions reports whether an entry can contain any of the fields, by their first steps. Most entries contain only
// the status, or everything but the status, and need not be parsed.
func mentions(raw []byte, wanted []wantedField) bool {
	return slices.ContainsFunc(wanted, func(field wantedField) bool {
		return bytes.Contains(raw, []byte(`"f:`+field.root()+`"`))
	})
}

// readFields returns nil if they are unknown.
func readFields(raw *metav1.FieldsV1) *fieldpath.Set {
	if raw == nil {
		return nil
	}
	reader := raw.GetRawReader()
	if reader.Size() > maxFields {
		return nil
	}
	fields := &fieldpath.Set{}
	if fields.FromJSON(reader) != nil {
		return nil
	}
	return fields
}

// matches reports whether a field is the one at a path, or a part of it, or is perhaps one that it is a part of.
func matches(field fieldpath.Path, path []diff.Step, given bool) ownership {
	result := yes
	for i := range min(len(field), len(path)) {
		if result = min(result, sameStep(&field[i], &path[i])); result == no {
			return no
		}
	}
	switch {
	case len(field) < len(path):
		// Lists and maps can be owned as a whole; but an owner of one who has no part of it looks the same.
		result = min(result, perhaps)
	case len(field) > len(path) && !given:
		result = min(result, perhaps) // the rest of it
	}
	return result
}

func sameStep(element *fieldpath.PathElement, s *diff.Step) ownership {
	switch {
	case element.FieldName != nil:
		if s.Kind == diff.StepField && *element.FieldName == s.Name {
			return yes
		}
		return no
	case element.Key != nil && s.Kind == diff.StepElement:
		for _, key := range *element.Key {
			if key.Name != s.Key {
				continue
			}
			if fmt.Sprint(key.Value.Unstructured()) == s.Value {
				return yes
			}
			return no
		}
		return perhaps // the list uses another key
	default:
		return perhaps
	}
}
