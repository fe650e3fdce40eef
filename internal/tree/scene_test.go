// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// noon is the current time in these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// of returns an object with owners. Its UID is its kind and name, so a test can refer to it.
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
