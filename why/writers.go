// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writersOf are those who made one version of an object of another, as far as managed fields tell.
//
// An entry that is new, or has another time, is that of a writer. Times have no fractions of seconds, though, and whoever
// writes the same fields twice within a second leaves no trace; then it is the newest entry that fits what changed: one of
// the status subresource for a status, any other for the rest. An entry whose fields have changed but not its time is one
// that somebody has taken fields from.
func writersOf(old, now client.Object, changes []Change) []Writer {
	before, after := old.GetManagedFields(), now.GetManagedFields()
	var writers []Writer
	for i := range after {
		if was := sameEntry(before, &after[i]); was == nil || !sameTime(was.Time, after[i].Time) {
			writers = append(writers, writer(&after[i]))
		}
	}
	if len(writers) > 0 || len(after) == 0 {
		return writers
	}
	var status, rest bool
	for i := range changes {
		if isWithin(changes[i].Path, "status") {
			status = true
		} else {
			rest = true
		}
	}
	for _, wanted := range []struct{ yes, status bool }{{rest, false}, {status, true}} {
		if !wanted.yes {
			continue
		}
		if newest := newestEntry(after, wanted.status); newest != nil {
			writers = append(writers, writer(newest))
		}
	}
	return writers
}

// creators are those who wrote an object before it was first seen.
func creators(object client.Object) []Writer {
	entries := object.GetManagedFields()
	var writers []Writer
	for i := range entries {
		// Whoever has written the status since is not its creator.
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

// newestEntry is the newest one of the status, or of all others. Later ones in the list win: they are sorted by time.
func newestEntry(entries []metav1.ManagedFieldsEntry, status bool) (newest *metav1.ManagedFieldsEntry) {
	for i := range entries {
		e := &entries[i]
		if (e.Subresource == "status") != status || e.Time == nil {
			continue
		}
		if newest == nil || !e.Time.Before(newest.Time) {
			newest = e
		}
	}
	return newest
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
