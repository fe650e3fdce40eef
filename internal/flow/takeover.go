// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Server-side apply removes a field only if the applier owns it. Two kinds of fields have to become ours first:
//
//   - Fields that we created a child with. A create counts as an update, and not as an apply.
//   - Fields that other writers added. Once we own them and they are not in the configuration, they are removed. If they are in
//     an item that admission has added to a list, the whole item is removed, because the rest of it may not be valid. Admission then
//     adds it again. If the server does not let us remove the item, it is given back when the added fields are gone.
//
// Taking over changes only managed fields, except for removals. The apply after it changes all fields at once, so the child is never
// in an intermediate state, which the server might reject. If that apply fails or never comes, nothing else tells added fields from
// our own, so we give up AppliedAnnotation until then: a child without it is applied again.

// mustTakeOver reports whether we have to take over fields before the child is applied.
func (p *Pass) mustTakeOver(object client.Object, found drift) bool {
	hasReleased := found.released != nil && !found.released.Empty()
	return len(found.added) > 0 || hasReleased || slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return isEntryOf(&entry, p.fieldOwner) && entry.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// takeOver takes over fields. The object must be the server's version; it is replaced with the response.
func (p *Pass) takeOver(ctx context.Context, object client.Object, desired *desired, found drift) error {
	entries, err := takenOver(object.GetManagedFields(), p.fieldOwner, desired.apiVersion, found)
	if err != nil {
		return fmt.Errorf("taking over the fields of %s: %w", describe(object, desired.name), err)
	}
	operations := []map[string]any{
		// The resource version is a precondition: the managed fields and the items of lists must be the ones that were read.
		{"op": "replace", "path": "/metadata/resourceVersion", "value": object.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
	}
	if removals := p.removals(object, desired, found); len(removals) > 0 {
		err := p.patchJSON(ctx, object, desired, append(slices.Clip(operations), removals...))
		if !apierrors.IsInvalid(err) {
			return err
		}
		// What refers to them may be a field of ours that was changed. The apply restores it with the same request.
	}
	return p.patchJSON(ctx, object, desired, operations)
}

func (p *Pass) patchJSON(ctx context.Context, object client.Object, desired *desired, operations []map[string]any) error {
	patch, err := json.Marshal(operations)
	if err != nil {
		return fmt.Errorf("encoding the managed fields of %s: %w", describe(object, desired.name), err)
	}
	var options []client.PatchOption
	if !p.isCached(object) {
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	if err := p.write(object, desired.name, func() error {
		return p.client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), options...)
	}); err != nil {
		return fmt.Errorf("taking over the fields of %s: %w", describe(object, desired.name), err)
	}
	return nil
}

// takenOver returns managed fields in which all fields that the owner has set, and those that others have added,
// count as applied.
func takenOver(entries []metav1.ManagedFieldsEntry, owner, apiVersion string, found drift) ([]metav1.ManagedFieldsEntry, error) {
	ours := &fieldpath.Set{}
	if found.injected != nil {
		ours = ours.Union(found.injected)
	}
	for _, other := range found.added {
		ours = ours.Union(other.fields)
	}
	var result []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		fields := fieldsOf(&entry)
		if fields == nil {
			result = append(result, entry)
			continue
		}
		if isEntryOf(&entry, owner) {
			if found.released != nil {
				fields = fields.Difference(found.released)
			}
			ours = ours.Union(fields)
			continue
		}
		left := fields
		for _, other := range found.added {
			if other.name == entry.Manager && other.subresource == entry.Subresource {
				left = left.Difference(other.fields)
			}
		}
		if left.Empty() {
			continue
		}
		if left != fields {
			encoded, err := encodeFields(left)
			if err != nil {
				return nil, err
			}
			entry.FieldsV1 = encoded
		}
		result = append(result, entry)
	}
	if len(found.added) > 0 {
		ours = ours.Difference(appliedHash)
	}
	encoded, err := encodeFields(ours)
	if err != nil {
		return nil, err
	}
	return append(result, metav1.ManagedFieldsEntry{
		Manager: owner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, FieldsType: "FieldsV1", FieldsV1: encoded,
	}), nil
}

func encodeFields(fields *fieldpath.Set) (*metav1.FieldsV1, error) {
	data, err := fields.ToJSON()
	if err != nil {
		return nil, err
	}
	encoded := &metav1.FieldsV1{}
	encoded.SetRawBytes(data)
	return encoded, nil
}
