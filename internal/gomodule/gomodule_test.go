// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package gomodule

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDir(t *testing.T) {
	// Whatever lies around the test's own folder has no influence on it.
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	around := Dir(filepath.Dir(temporary))
	module, below := filepath.Join(temporary, "module"), filepath.Join(temporary, "module", "below", "it")
	beside := filepath.Join(temporary, "beside")
	for _, dir := range []string{below, beside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{temporary, module} {
		if err := os.WriteFile(filepath.Join(dir, File), []byte("module stray\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{module: module, below: module, beside: around, temporary: around} {
		if got := Dir(path); got != want {
			t.Errorf("%s is in the module %q instead of %q", path, got, want)
		}
	}
}
