// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import "testing"

// Nodes that are simulated pull any image, so a campaign must know which cannot be pulled.
func TestImagesThatCannotBePulled(t *testing.T) {
	for _, test := range []struct {
		change Change
		want   string
	}{
		{Change{Class: Misuse, Value: "missing.invalid/no-such-image:0"}, "no-such-image:0"},
		{Change{Class: Misuse, Value: "no-such-tag"}, "no-such-tag"},
		{Change{Class: Misuse, Value: "Not::An@Image"}, "Not::An@Image"},
		{Change{Class: Valid, Value: "no-such-tag"}, ""},
		{Change{Class: Misuse, Value: "-1"}, ""},
		{Change{Class: Misuse, Value: int64(-1)}, ""},
		{Change{Class: Misuse}, ""},
	} {
		if got := test.change.MissingImage(); got != test.want {
			t.Errorf("%v: got %q, want %q", test.change, got, test.want)
		}
	}
}
