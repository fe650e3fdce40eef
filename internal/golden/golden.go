// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test saw with files under testdata.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// Update is the flag with which tests write what they see.
var Update = flag.Bool("update", false, "update the golden files")

// Compare compares with a file under testdata. Run the tests with -update to write what they saw.
func Compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading the golden file (run the test with -update to write it): %v", err)
	}
	if string(want) != got {
		t.Errorf("differs from %s\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}
