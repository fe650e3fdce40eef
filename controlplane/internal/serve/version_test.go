// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import "testing"

func TestMinorOfRelease(t *testing.T) {
	for of, want := range map[string]string{
		release("v1.36.3", ""):     "v1.36",
		release("v1.36.3", "1.34"): "v1.34",
		"v1.35.0":                  "v1.35",
		"":                         "",
	} {
		if got := minorOf(of); got != want {
			t.Errorf("%q: got %q, want %q", of, got, want)
		}
	}
}
