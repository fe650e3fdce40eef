// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scratch

import (
	"os"
	"path/filepath"
	"testing"
)

func TestClear(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	defer func() { over = false }()
	first, remove, err := Make("first-")
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := Make("second-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(second, "kubeconfig"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if remove(); exists(first) || !exists(second) {
		t.Error("another directory was removed")
	}
	if Clear(); exists(second) {
		t.Error("a directory is left")
	}
	if _, _, err := Make("third-"); err == nil {
		t.Error("a directory was created after that")
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
