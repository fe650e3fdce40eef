// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why/diff"
)

func isSecret(o *Object) bool { return o.Kind == "Secret" && o.Group == "" }

// Compare returns the first fields that differ between two versions of an object, how many there are, and the writers of the newer
// version, in the form of causes and with the default bounds. What is left of a very large object counts as one more change.
func Compare(old, now client.Object) (changes []Change, changed int, by []Writer) {
	o := Options{}.withDefaults()
	// A version of which only the metadata was requested may not have the kind of the object.
	secret := holdsSecret(old) || holdsSecret(now)
	found := diff.Differ{MaxChanges: o.MaxChanges, MaxValue: o.MaxValue, MaxCompared: o.MaxCompared}.Compare(old, now, secret)
	return found.Changes, found.Changed, writersOf(old, now, &found, o.Clock.Now())
}

func holdsSecret(object client.Object) bool {
	if _, typed := object.(*corev1.Secret); typed {
		return true
	}
	kind := object.GetObjectKind().GroupVersionKind()
	return isSecret(&Object{Kind: kind.Kind, Group: kind.Group})
}
