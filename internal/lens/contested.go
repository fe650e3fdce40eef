// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opdock/opdock/why"
	"github.com/opdock/opdock/why/diff"
)

// maxSureChanges is the number of changes from which on there may be others that are not listed.
const maxSureChanges = 16

// mayHaveChanged reports whether a write may be responsible for a change that managed fields ascribe to others. Their
// times have no fractions: an entry that was written twice within a second looks as if it was written once.
func mayHaveChanged(r *Request, old, now client.Object, changes []why.Change) bool {
	if len(changes) >= maxSureChanges || slices.ContainsFunc(changes, func(c why.Change) bool { return c.New == "" }) {
		return true // removing a field that another manager owns leaves no entry
	}
	before, after := entriesOf(r, old), entriesOf(r, now)
	if len(before) != len(after) {
		return true
	}
	newest := newestTime(now.GetManagedFields())
	for i := range after {
		fields := managedBy(&after[i])
		was := slices.IndexFunc(before, func(e metav1.ManagedFieldsEntry) bool { return e.APIVersion == after[i].APIVersion })
		if was < 0 || fields == nil {
			return true
		}
		if owned := managedBy(&before[was]); owned == nil || !owned.Equals(fields) {
			return true
		}
		// The latest write has the latest time.
		if at := after[i].Time; (at == nil || !at.Time.Before(newest)) && mayOwnAny(fields, changes) {
			return true
		}
	}
	return false
}

// entriesOf returns the managed fields of an object that a request would update.
func entriesOf(r *Request, object client.Object) (own []metav1.ManagedFieldsEntry) {
	for _, e := range object.GetManagedFields() {
		if e.Manager == r.FieldManager && e.Subresource == r.Resource.Subresource && (e.Operation == metav1.ManagedFieldsOperationApply) == (r.Verb == "apply") {
			own = append(own, e)
		}
	}
	return own
}

func newestTime(entries []metav1.ManagedFieldsEntry) (newest time.Time) {
	for i := range entries {
		if at := entries[i].Time; at != nil && at.After(newest) {
			newest = at.Time
		}
	}
	return newest
}

// managedBy returns the fields of an entry, nil if they are unknown.
func managedBy(e *metav1.ManagedFieldsEntry) *fieldpath.Set {
	fields := &fieldpath.Set{}
	if e.FieldsV1 == nil || fields.FromJSON(e.FieldsV1.GetRawReader()) != nil {
		return nil
	}
	return fields
}

// mayOwnAny reports whether one of the changes may be to one of the fields.
func mayOwnAny(fields *fieldpath.Set, changes []why.Change) bool {
	for i := range changes {
		path, ok := diff.ParsePath(changes[i].Path)
		if !ok {
			return true
		}
		for field := range fields.Leaves().All() {
			if mayBeWithin(field, path) {
				return true
			}
		}
	}
	return false
}

// mayBeWithin reports whether a field may be the one at a path, a part of it, or one that it is a part of. Elements of
// lists are not told apart.
func mayBeWithin(field fieldpath.Path, path []diff.Step) bool {
	for i := range min(len(field), len(path)) {
		if name := field[i].FieldName; name != nil && path[i].Kind == diff.StepField && *name != path[i].Name {
			return false
		}
	}
	return true
}
