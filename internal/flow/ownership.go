// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ownership is what the managed fields of a child say about it.
//
// The API server records which manager last set each field. A writer that changes a field takes its ownership from
// everybody else, a writer that removes a field ends its ownership, and a writer that adds a field owns it. What the
// server itself fills in belongs to the writer whose request it completed (defaults), or to no manager at all
// (addresses, ports, and whatever admission webhooks and policies change). So ownership tells drift from defaulting and
// admission, which a comparison of values cannot.
type ownership struct {
	// ours are the fields that we set last, when we created or applied; nil if there are none.
	ours *fieldpath.Set
	// others are the managers that own something outside of metadata and status.
	others []manager
}

// manager is an entry of the managed fields that is not ours.
type manager struct {
	name, subresource string
	fields            *fieldpath.Set
}

// notSpec are the fields that are never part of what a child asks for. Other managers may have labels and annotations of
// their own there; ours are part of what we apply.
var notSpec = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("status"),
)

// ownershipOf reads the managed fields of a child, and isOurs says which entries are ours. Entries that cannot be read are
// ignored: then fields are missing from ours, and applying again repairs them.
func ownershipOf(live metav1.Object, isOurs func(*metav1.ManagedFieldsEntry) bool) ownership {
	var found ownership
	for _, entry := range live.GetManagedFields() {
		isOurs := isOurs(&entry)
		if !isOurs && !ConcernsSpec(entry) {
			continue
		}
		fields := fieldsOf(&entry)
		switch {
		case fields == nil:
		case !isOurs:
			found.others = append(found.others, manager{entry.Manager, entry.Subresource, fields.RecursiveDifference(notSpec)})
		case found.ours == nil:
			found.ours = fields
		default:
			found.ours = found.ours.Union(fields)
		}
	}
	return found
}

// isEntryOf reports whether an entry holds what the manager applied, created or updated, apart from subresources.
func isEntryOf(entry *metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Subresource == ""
}

// entriesOf returns isEntryOf for a manager.
func entriesOf(manager string) func(*metav1.ManagedFieldsEntry) bool {
	return func(entry *metav1.ManagedFieldsEntry) bool { return isEntryOf(entry, manager) }
}

// appliedBy is entriesOf for a child that the manager creates and applies, and never updates: an update under its name is that
// of another writer, who can choose any name. Creating counts as updating, so an update is ours if nothing was applied yet and
// it is not newer than the child.
func appliedBy(manager string, live metav1.Object) func(*metav1.ManagedFieldsEntry) bool {
	isApplied := slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return isEntryOf(&entry, manager) && entry.Operation == metav1.ManagedFieldsOperationApply
	})
	created := live.GetCreationTimestamp()
	return func(entry *metav1.ManagedFieldsEntry) bool {
		switch {
		case !isEntryOf(entry, manager):
			return false
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			return true
		default:
			return !isApplied && (entry.Time == nil || !entry.Time.After(created.Time))
		}
	}
}

func fieldsOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	if entry.FieldsV1 == nil {
		return nil
	}
	var fields fieldpath.Set
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil
	}
	return &fields
}

// ConcernsSpec reports whether an entry of the managed fields has fields outside of metadata and status. Caches drop the
// other entries of managers that are not ours: nothing reads them.
func ConcernsSpec(entry metav1.ManagedFieldsEntry) bool {
	if entry.Subresource == "status" || entry.FieldsV1 == nil {
		return false
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	for name := range fields {
		if name != "f:metadata" && name != "f:status" && name != "f:apiVersion" && name != "f:kind" {
			return true
		}
	}
	return false
}

// added returns the fields that the manager owns, that we neither own nor ask for, and that it has no right to.
func (m *manager) added(kind string, expected ...*fieldpath.Set) *fieldpath.Set {
	fields := m.fields
	for _, set := range expected {
		if set != nil {
			fields = fields.Difference(set)
		}
	}
	if fields.Empty() {
		return fields
	}
	intruding := &fieldpath.Set{}
	for path := range fields.All() {
		if !hasRight(kind, path, m.subresource) {
			intruding.Insert(slices.Clone(path))
		}
	}
	return intruding
}

// fieldName returns a path without the keys of list items, as the names of fields are written in documentation:
// spec.ports[].nodePort.
func fieldName(path fieldpath.Path) string {
	var name strings.Builder
	for _, element := range path {
		if element.FieldName == nil {
			name.WriteString("[]")
			continue
		}
		if name.Len() > 0 {
			name.WriteByte('.')
		}
		name.WriteString(*element.FieldName)
	}
	return name.String()
}
