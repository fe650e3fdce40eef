// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/why/diff"
)

func isSecret(o *Object) bool { return o.Kind == "Secret" && o.Group == "" }

// Compare returns the fields that differ between two versions of an object, and the writers of the newer one, in the
// form of causes and with the default bounds.
func Compare(old, now client.Object) ([]Change, []Writer) {
	o := Options{}.withDefaults()
	_, secret := now.(*corev1.Secret)
	kind := now.GetObjectKind().GroupVersionKind()
	found := diff.Differ{MaxChanges: o.MaxChanges, MaxValue: o.MaxValue, MaxCompared: o.MaxCompared}.Compare(old, now, secret || isSecret(&Object{Kind: kind.Kind, Group: kind.Group}))
	return found.Changes, writersOf(old, now, &found, o.Clock.Now())
}
