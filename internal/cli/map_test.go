// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestContributorsFindEveryPackage keeps the map in CONTRIBUTING.md complete.
func TestContributorsFindEveryPackage(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"internal", filepath.Join("internal", "cli")} {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if !entry.IsDir() || name == "testdata" {
				continue
			}
			if !strings.Contains(string(text), "`"+name+"`") && !strings.Contains(string(text), "`cli/"+name+"`") {
				t.Errorf("CONTRIBUTING.md does not say what %s/%s is", folder, name)
			}
		}
	}
}
