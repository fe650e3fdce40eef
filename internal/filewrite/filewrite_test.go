// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filewrite

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			files[name+"/"] = ""
			return nil
		}
		content, err := os.ReadFile(name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// changes make a file in a new folder, change one, and remove the last one of a folder.
func changes(t *testing.T, dir string) []Change {
	t.Helper()
	for name, content := range map[string]string{"changed": "old", "folder/removed": "gone"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []Change{
		{Path: "a/b/new", Content: []byte("new"), Mode: 0o644},
		{Path: "changed", Content: []byte("new"), Before: []byte("old"), Mode: 0o600},
		{Path: "folder/removed", Before: []byte("gone"), Mode: 0o600, Remove: true},
	}
}

func TestReverseTakesEverythingBack(t *testing.T) {
	dir := t.TempDir()
	all := changes(t, dir)
	before := tree(t, dir)
	if err := Apply(dir, all); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		dir + "/": "", dir + "/a/": "", dir + "/a/b/": "", dir + "/a/b/new": "new", dir + "/changed": "new",
	}
	if after := tree(t, dir); !maps.Equal(after, want) {
		t.Errorf("got %v", after)
	}
	if err := Apply(dir, Reverse(all)); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); !maps.Equal(after, before) {
		t.Errorf("got %v, want %v", after, before)
	}
}

func TestAFailureChangesNothing(t *testing.T) {
	dir := t.TempDir()
	all := changes(t, dir)
	for name, impossible := range map[string]Change{
		"found while preparing": {Path: "changed/below", Content: []byte("a folder is a file"), Mode: 0o644},
		"found while renaming":  {Path: "not-there", Mode: 0o644, Remove: true},
	} {
		t.Run(name, func(t *testing.T) {
			before := tree(t, dir)
			if err := Apply(dir, append(all[:2:2], impossible)); err == nil {
				t.Fatal("no error")
			}
			if after := tree(t, dir); !maps.Equal(after, before) {
				t.Errorf("got %v, want %v", after, before)
			}
		})
	}
}
