// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package filewrite

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
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

// changes make a file in a new folder, change one, fill an empty one, and remove the last one of a folder.
func changes(t *testing.T, dir string) []Change {
	t.Helper()
	for name, content := range map[string]string{"changed": "old", "empty": "", "folder/removed": "gone"} {
		testenv.WriteFile(t, filepath.Join(dir, name), content)
	}
	return testChanges()
}

func testChanges() []Change {
	return []Change{
		{Path: "a/b/new", Content: []byte("new"), Mode: 0o644},
		{Path: "changed", Content: []byte("new"), Before: []byte("old"), Mode: 0o600},
		{Path: "empty", Content: []byte("full"), Before: []byte{}, Mode: 0o600},
		{Path: "folder/removed", Before: []byte("gone"), Mode: 0o600, Remove: true},
	}
}

func changed(dir string) map[string]string {
	return map[string]string{
		dir + "/": "", dir + "/a/": "", dir + "/a/b/": "", dir + "/a/b/new": "new", dir + "/changed": "new", dir + "/empty": "full",
	}
}

func TestApply(t *testing.T) {
	dir := t.TempDir()
	if err := Apply(t.Context(), dir, changes(t, dir)); err != nil {
		t.Fatal(err)
	}
	if after := tree(t, dir); !maps.Equal(after, changed(dir)) {
		t.Errorf("got %v", after)
	}
}

func TestRollbackTakesEverythingBack(t *testing.T) {
	dir := t.TempDir()
	all := changes(t, dir)
	before := tree(t, dir)
	transaction, err := Begin(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := transaction.Apply(all); err != nil {
		t.Fatal(err)
	}
	// What is written with the transaction's context is part of it, even a file that it has changed before.
	more := []Change{{Path: "changed", Content: []byte("newer"), Before: []byte("new"), Mode: 0o600}, {Path: "a/more", Content: []byte("x"), Mode: 0o600}}
	if err := Apply(transaction.Context(t.Context()), dir, more); err != nil {
		t.Fatal(err)
	}
	if err := transaction.Rollback(); err != nil {
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
		"found while planning": {Path: "changed/below", Content: []byte("a folder is a file"), Mode: 0o644},
		"found while staging":  {Path: strings.Repeat("long", 64), Content: []byte("a name that no file can have"), Mode: 0o644},
		"found while renaming": {Path: "not-there", Mode: 0o644, Remove: true},
		"edited meanwhile":     {Path: "empty", Content: []byte("new"), Before: []byte("what was there once"), Mode: 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			before := tree(t, dir)
			if err := Apply(t.Context(), dir, append(all[:2:2], impossible)); err == nil {
				t.Fatal("no error")
			}
			if after := tree(t, dir); !maps.Equal(after, before) {
				t.Errorf("got %v, want %v", after, before)
			}
		})
	}
}

func TestAFolderThatWasNotThereIsGoneAfterAFailure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "one", "two")
	if err := Apply(t.Context(), dir, []Change{{Path: "not-there", Mode: 0o644, Remove: true}}); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestALinkStaysALink(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	testenv.WriteFile(t, filepath.Join(elsewhere, "file"), "old")
	if err := os.Symlink(filepath.Join(elsewhere, "file"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Apply(t.Context(), dir, []Change{{Path: "link", Content: []byte("new"), Before: []byte("old"), Mode: 0o600}}); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(elsewhere, "file")); err != nil || string(content) != "new" {
		t.Errorf("got %q, %v", content, err)
	}
}

func TestApplyOfExistingContent(t *testing.T) {
	dir := t.TempDir()
	testenv.WriteFile(t, filepath.Join(dir, "file"), "new")
	if err := Apply(t.Context(), dir, []Change{{Path: "file", Content: []byte("new"), Mode: 0o600}}); err != nil {
		t.Fatal(err)
	}
}
