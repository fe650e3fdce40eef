// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"strings"
	"testing"
)

// TestFamiliesAreDocumented keeps the table in docs/prove.md complete.
func TestFamiliesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/prove.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range families {
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/prove.md does not describe the family %s", name)
		}
	}
}
