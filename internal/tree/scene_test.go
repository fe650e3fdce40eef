// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// noon is when everything is looked at in these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// of makes an object that belongs to others. Its UID is its kind and name, so that a test can say which one it means.
func of(o Object, owners ...Object) Object {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	o.UID = types.UID(o.Kind + "/" + o.Namespace + "/" + o.Name)
	if o.Created.IsZero() {
		o.Created = noon.Add(-90 * time.Second)
	}
	for _, owner := range owners {
		o.Owners = append(o.Owners, owner.UID)
	}
	return o
}
