// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
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
		// In place: nobody else has the object yet.
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
