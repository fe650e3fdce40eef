// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why/diff"
)

// writersOf returns the writers of the difference between two versions of an object, as far as managed fields
// identify them.
//
// An entry that is new, or has another time, identifies a writer. If there is none, either a manager has written
// again within the second of its last write, because times have no fractions, or the write left no trace.
// Removing something creates no entry, except by an apply: the owners of the field lose it, but the writer is not
// recorded.
func writersOf(old, now client.Object, found *diff.Comparison, seen time.Time) []Writer {
	if old.GetUID() != now.GetUID() {
		return creators(now)
	}
	before, after := entriesOf(old), entriesOf(now)
	var writers []Writer
	for i := range after {
		if was := sameEntry(before, &after[i]); (was == nil || !sameTime(was.Time, after[i].Time)) && !isBookkeeping(&after[i]) {
			writers = append(writers, writer(&after[i]))
		}
	}
	if len(writers) > 0 || len(after) == 0 || slices.ContainsFunc(found.Changes, leavesNoTrace) {
		return writers
	}
	return secondWriters(now.GetManagedFields(), found, seen)
}

// entriesOf returns the managed fields of an object. They may lack the fields themselves: of unstructured objects,
// GetManagedFields encodes and decodes all of them, which takes as long as everything else here together.
func entriesOf(object client.Object) []metav1.ManagedFieldsEntry {
	generic, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object.GetManagedFields()
	}
	list, _, _ := unstructured.NestedFieldNoCopy(generic.Object, "metadata", "managedFields")
	items, _ := list.([]any)
	entries := make([]metav1.ManagedFieldsEntry, 0, len(items))
	for _, one := range items {
		item, ok := one.(map[string]any)
		if !ok {
			continue
		}
		text := func(name string) string {
			value, _ := item[name].(string)
			return value
		}
		entry := metav1.ManagedFieldsEntry{
			Manager: text("manager"), Operation: metav1.ManagedFieldsOperationType(text("operation")),
			APIVersion: text("apiVersion"), Subresource: text("subresource"),
		}
		if at, err := time.Parse(time.RFC3339, text("time")); err == nil {
			entry.Time = &metav1.Time{Time: at.Local()}
		}
		entries = append(entries, entry)
	}
	return entries
}

// isBookkeeping reports whether an entry is one that the server creates for earlier writes.
func isBookkeeping(e *metav1.ManagedFieldsEntry) bool {
	return e.Manager == "before-first-apply" || e.Manager == "ancient-changes"
}

// creators returns the writers of an object before it was first seen.
func creators(object client.Object) []Writer {
	entries := entriesOf(object)
	var writers []Writer
	for i := range entries {
		// A manager that has written only the status since is not its creator.
		if entries[i].Subresource == "" || len(entries) == 1 {
			writers = append(writers, writer(&entries[i]))
		}
	}
	return writers
}

func sameEntry(entries []metav1.ManagedFieldsEntry, wanted *metav1.ManagedFieldsEntry) *metav1.ManagedFieldsEntry {
	for i := range entries {
		e := &entries[i]
		if e.Manager == wanted.Manager && e.Operation == wanted.Operation && e.Subresource == wanted.Subresource && e.APIVersion == wanted.APIVersion {
			return e
		}
	}
	return nil
}

func sameTime(a, b *metav1.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(b)
}

func writer(e *metav1.ManagedFieldsEntry) Writer {
	w := Writer{Manager: e.Manager, Operation: string(e.Operation), Subresource: e.Subresource}
	if e.Time != nil {
		w.Time = e.Time.Time
	}
	return w
}

// managers names writers in a sentence.
func managers(writers []Writer) string {
	names := make([]string, 0, len(writers))
	for i := range writers {
		name := writers[i].Manager
		if writers[i].Subresource != "" {
			name += " (" + writers[i].Subresource + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
