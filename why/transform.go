// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// KeepWriters is a transform for caches that makes objects small, but keeps their writers:
// managed fields keep manager, operation, subresource and time, but lose the fields, unless
// whole selects the entry. whole may be nil.
func KeepWriters(whole func(metav1.ManagedFieldsEntry) bool) toolscache.TransformFunc {
	return func(object any) (any, error) {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return object, nil //nolint:nilerr // a tombstone, which has nothing to drop
		}
		// In place, because the object is not shared yet.
		entries := accessor.GetManagedFields()
		for i := range entries {
			if entry := &entries[i]; whole == nil || !whole(*entry) {
				entry.FieldsV1, entry.FieldsType = nil, ""
			}
		}
		accessor.SetManagedFields(entries)
		return object, nil
	}
}
