// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

// patience is how long a test waits for what has to happen.
const patience = testenv.Patience

// awaitChange receives until the file was among what may have changed, and returns all that came until then.
func awaitChange(t *testing.T, w *watcher, path string) (all []string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case paths := <-w.changed:
			all = append(all, paths...)
			if slices.Contains(paths, path) {
				return all
			}
		case err := <-w.failed:
			t.Fatal(err)
		case <-deadline:
			t.Fatalf("%s was not noticed, only %q", path, all)
		}
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"main.go": "package main\n", "vendor/v.go": "package v\n", "testdata/t.go": "package t\n", "bin/manager": "x",
		"nested/go.mod": "module nested\n", "internal/bin/b.go": "package bin\n", ".git/HEAD": "x",
	})
	w, err := watch(t.Context(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }

	// What has to be left out comes first; the change that follows shows that it would have been seen by now.
	write(t, dir, map[string]string{
		"vendor/v.go": "package v // new\n", "testdata/t.go": "package t // new\n", "bin/manager": "y", ".git/HEAD": "y",
		"nested/n.go": "package nested\n", "main.go~": "x", ".main.go.swp": "x", "4913": "x", "main_test.go": "package main\n",
	})
	write(t, dir, map[string]string{"main.go": "package main // new\n"})
	if all := awaitChange(t, w, path("main.go")); len(all) != 1 {
		t.Errorf("noticed %q, want only main.go", all)
	}

	write(t, dir, map[string]string{"internal/bin/b.go": "package bin // new\n"})
	awaitChange(t, w, path("internal/bin/b.go"))

	// A file in a folder that did not exist, and then another one.
	write(t, dir, map[string]string{"api/v1/types.go": "package v1\n"})
	awaitChange(t, w, path("api/v1/types.go"))
	write(t, dir, map[string]string{"api/v1/more.go": "package v1\n"})
	awaitChange(t, w, path("api/v1/more.go"))

	// Editors write beside a file and then put that in its place.
	if err := os.WriteFile(path("main.go.tmp"), []byte("package main // once more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path("main.go.tmp"), path("main.go")); err != nil {
		t.Fatal(err)
	}
	if all := awaitChange(t, w, path("main.go")); slices.Contains(all, path("main.go.tmp")) {
		t.Errorf("a temporary file was noticed: %q", all)
	}
	if err := os.Remove(path("main.go")); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, w, path("main.go"))
}

func TestManySavesAreOneChange(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.go": "package a\n", "b.go": "package a\n"})
	w, err := watch(t.Context(), []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"a.go": "package a // 1\n"})
	write(t, dir, map[string]string{"b.go": "package a // 1\n"})
	write(t, dir, map[string]string{"a.go": "package a // 2\n"})
	// Each time it has every file once, and all changes come. How many times it takes is a matter of how fast they are written.
	want := []string{filepath.Join(dir, "a.go"), filepath.Join(dir, "b.go")}
	for seen := map[string]bool{}; len(seen) < len(want); {
		select {
		case paths := <-w.changed:
			if !slices.IsSorted(paths) || len(slices.Compact(slices.Clone(paths))) != len(paths) {
				t.Errorf("noticed %q", paths)
			}
			for _, path := range paths {
				seen[path] = true
				if !slices.Contains(want, path) {
					t.Fatalf("noticed %s", path)
				}
			}
		case err := <-w.failed:
			t.Fatal(err)
		case <-time.After(patience):
			t.Fatalf("noticed only %v", seen)
		}
	}
}
