// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"

	"github.com/opdock/opdock/controlplane/internal/objects"
)

func TestImported(t *testing.T) {
	for want, result := range map[string]objects.Result{
		"0 objects are imported": {},
		"1 object is imported":   {Written: 1},
		"2 objects are imported": {Written: 2},
		"1 object is imported; 2 could not be, the first is pods a: no": {Written: 1, LeftOut: []string{"pods a: no", "pods b: no"}},
	} {
		if got := imported(result); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
