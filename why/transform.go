// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
)

// KeepWriters is a transform for caches that makes objects small, but keeps what tells who changed them: of managed fields
// it keeps who, how, where and when, and drops which fields, unless whole says that an entry is to be kept as it is. It may
// be nil.
func KeepWriters(whole func(metav1.ManagedFieldsEntry) bool) toolscache.TransformFunc {
	return (&keeper{whole: whole}).transform
}

type keeper struct {
	whole func(metav1.ManagedFieldsEntry) bool
	names names
}

// transform changes the object itself, which nobody else has yet.
func (k *keeper) transform(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil //nolint:nilerr // a tombstone, which has nothing to drop
	}
	entries := accessor.GetManagedFields()
	if len(entries) == 0 {
		return object, nil
	}
	for i := range entries {
		entry := &entries[i]
		if k.whole == nil || !k.whole(*entry) {
			entry.FieldsV1, entry.FieldsType = nil, ""
		}
		entry.Manager, entry.APIVersion = k.names.shared(entry.Manager), k.names.shared(entry.APIVersion)
	}
	accessor.SetManagedFields(entries)
	return object, nil
}

// names are the few that stand in all objects, where each would take memory of its own. Each has a place by how it looks; if
// two have the same one, they take turns.
type names [64]atomic.Pointer[string]

// shared returns an equal name that others have, too.
func (n *names) shared(name string) string {
	if name == "" {
		return ""
	}
	place := &n[(31*len(name)+7*int(name[0])+int(name[len(name)-1]))%len(n)]
	if known := place.Load(); known != nil && *known == name {
		return *known
	}
	// Of its own, so that it does not hold on to all that it was read from.
	name = strings.Clone(name)
	place.Store(&name)
	return name
}
