// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// KeepWriters is a transform for caches that makes objects small, but keeps what tells who changed them: of managed fields
// it keeps who, how, where and when, and drops which fields, unless whole says that an entry is to be kept as it is. It may
// be nil.
func KeepWriters(whole func(metav1.ManagedFieldsEntry) bool) toolscache.TransformFunc {
	return func(object any) (any, error) {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return object, nil //nolint:nilerr // a tombstone, which has nothing to drop
		}
		entries := accessor.GetManagedFields()
		if len(entries) == 0 {
			return object, nil
		}
		kept := make([]metav1.ManagedFieldsEntry, len(entries))
		for i, entry := range entries {
			if whole == nil || !whole(entry) {
				entry.FieldsV1, entry.FieldsType = nil, ""
			}
			// The same few names stand in all objects, each time in memory of their own.
			entry.Manager = unique.Make(entry.Manager).Value()
			entry.APIVersion = unique.Make(entry.APIVersion).Value()
			kept[i] = entry
		}
		accessor.SetManagedFields(kept)
		return object, nil
	}
}
