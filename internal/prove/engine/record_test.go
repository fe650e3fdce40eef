// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKeepFile keeps files in the same file system and, on Linux, in another one: directories for temporary files often are one.
func TestKeepFile(t *testing.T) {
	places := []string{t.TempDir()}
	if other, err := os.MkdirTemp("/dev/shm", "opdock-test-"); err == nil { //nolint:usetesting // t.TempDir is in the same file system
		t.Cleanup(func() {
			if err := os.RemoveAll(other); err != nil {
				t.Error(err)
			}
		})
		places = append(places, other)
	}
	for _, place := range places {
		from, to := filepath.Join(t.TempDir(), "recording.jsonl"), filepath.Join(place, "prove", "learned.jsonl")
		for _, content := range []string{"the first campaign, which was longer", "the second"} {
			if err := os.WriteFile(from, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := keepFile(from, to); err != nil {
				t.Fatalf("to %s: %v", place, err)
			}
			if got, err := os.ReadFile(to); err != nil || string(got) != content {
				t.Errorf("to %s: got %q, %v", place, got, err)
			}
		}
	}
}
