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

// ownership holds the owners of a child's fields.
//
// The API server records which manager last set each field. A writer that changes a field takes its ownership from
// all others, a writer that removes a field ends its ownership, and a writer that adds a field owns it. Values that
// the server sets belong to the writer of the request (defaults), or to no manager at all (addresses, ports, and
// changes by admission webhooks and policies). So ownership distinguishes drift from defaulting and admission, which
// a comparison of values cannot.
type ownership struct {
	// ours are the fields that we set last, when we created or applied; nil if there are none.
	ours *fieldpath.Set
	// others holds the managers that own something outside of metadata and status.
	others []manager
}

// manager is an entry of the managed fields that is not ours.
type manager struct {
	name, subresource string
	fields            *fieldpath.Set
}

// notSpec holds the fields that are never compared. Other managers may have labels and annotations there; ours are
// part of the configuration.
var notSpec = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("status"),
)

// ownershipOf reads the managed fields of a child. isOurs selects our entries. Entries that cannot be parsed are
// ignored: our fields are then missing, and the next apply repairs them.
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
			spec := fields.RecursiveDifference(notSpec).Union(legacySpec(&entry, fields))
			found.others = append(found.others, manager{entry.Manager, entry.Subresource, spec})
		case found.ours == nil:
			found.ours = fields
		default:
			found.ours = found.ours.Union(fields)
		}
	}
	return found
}

// isEntryOf reports whether an entry is for an apply, create or update by the manager, not through a subresource.
func isEntryOf(entry *metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Subresource == ""
}

// entriesOf returns isEntryOf for a manager.
func entriesOf(manager string) func(*metav1.ManagedFieldsEntry) bool {
	return func(entry *metav1.ManagedFieldsEntry) bool { return isEntryOf(entry, manager) }
}

// appliedBy is entriesOf for a child that the manager creates and applies, and never updates: an update under its
// name comes from another writer, because any client can use any name. A create counts as an update, so an update is
// ours if nothing was applied yet and it is not newer than the child.
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
	if hasLegacySpec(&entry) {
		return true
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

// added returns the fields that the manager owns without a right, and that we neither own nor configure.
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
		if !hasRight(kind, path, m.subresource, expected...) {
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
			name.WriteString(anyItem)
			continue
		}
		if name.Len() > 0 {
			name.WriteByte('.')
		}
		name.WriteString(*element.FieldName)
	}
	return name.String()
}
