// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// found is where the pages are that are served, and whether there are notes of others.
func found(t *testing.T, dir string) (string, bool) {
	t.Helper()
	files, left, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	addresses := make([]string, 0, len(files))
	for _, file := range files {
		addresses = append(addresses, file.Address)
	}
	return strings.Join(addresses, " "), left
}

func announce(t *testing.T, dir, address string) *Note {
	t.Helper()
	note, err := Announce(dir, File{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { note.Close() })
	return note
}

func TestNotesOfPages(t *testing.T) {
	dir := t.TempDir()
	if got, left := found(t, dir); got != "" || left {
		t.Errorf("where there are none, there are %q (%v)", got, left)
	}
	first := announce(t, dir, "first")
	second := announce(t, dir, "second")
	if got, left := found(t, dir); got != "second first" || left {
		t.Errorf("there are %q (%v)", got, left)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if got, left := found(t, dir); got != "second" || left {
		t.Errorf("without the first there are %q (%v)", got, left)
	}
	third := announce(t, dir, "third")
	if got, _ := found(t, dir); got != "third second" {
		t.Errorf("with the third there are %q", got)
	}
	for _, note := range []*Note{second, third} {
		if err := note.Close(); err != nil {
			t.Error(err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v (%v)", files, err)
	}
}

// A process that is killed loses the lock and leaves the file. The next page takes the file's place.
func TestNotesOfDeadProcesses(t *testing.T) {
	dir := t.TempDir()
	killed := announce(t, dir, "killed")
	if err := killed.file.Close(); err != nil {
		t.Fatal(err)
	}
	if got, left := found(t, dir); got != "" || !left {
		t.Errorf("there are %q (%v)", got, left)
	}
	if err := os.Rename(filepath.Join(dir, FileName), filepath.Join(dir, "page-1.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(`{"address":"killed as well"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	announce(t, dir, "next")
	if got, left := found(t, dir); got != "next" || left {
		t.Errorf("then there are %q (%v)", got, left)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 1 || filepath.Base(files[0]) != FileName {
		t.Errorf("the files are %v (%v)", files, err)
	}
}
