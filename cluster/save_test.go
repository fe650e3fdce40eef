// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/opdock/opdock/internal/testenv"
)

func TestSaveReplacesOnlySnapshots(t *testing.T) {
	isolate(t)
	c := startFake(t, Options{Name: "dock"})
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(notes, []byte("the work of a year"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Save(t.Context(), notes); err == nil || !strings.Contains(err.Error(), "is not a snapshot") {
		t.Errorf("got %v", err)
	}
	if data, _ := os.ReadFile(notes); string(data) != "the work of a year" {
		t.Errorf("the file is now %q", data)
	}
	if _, err := c.Save(t.Context(), dir); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "base.snapshot")) {
		t.Errorf("a directory: %v", err)
	}
	empty := filepath.Join(dir, "empty.snapshot")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Save(t.Context(), empty); err != nil {
			t.Errorf("a file that may be replaced: %v", err)
		}
	}
}

func TestOneOfSeveralSavesCreatesTheFile(t *testing.T) {
	isolate(t)
	c := startFake(t, Options{Name: "dock"})
	meeting := t.TempDir()
	t.Setenv("OPDOCK_TEST_MARKER", meeting)
	t.Setenv(behaviourEnv, "meet")
	dir := t.TempDir()
	path := filepath.Join(dir, "same.snapshot")
	const savers = 3
	results := make([]error, savers)
	var running sync.WaitGroup
	for i := range savers {
		running.Go(func() { _, results[i] = c.SaveNew(t.Context(), path) })
	}
	awaitFiles(t, meeting, savers)
	if err := os.WriteFile(filepath.Join(meeting, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	saved := 0
	for _, err := range results {
		switch {
		case err == nil:
			saved++
		case !errors.Is(err, fs.ErrExist):
			t.Errorf("got %v", err)
		}
	}
	if saved != 1 {
		t.Errorf("%d of %d saves succeeded", saved, savers)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func awaitFiles(t *testing.T, dir string, count int) {
	t.Helper()
	testenv.Eventually(t, "all are there", func() bool {
		found, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(found) == count
	})
}

func TestWhatAKilledSaveLeavesIsRemoved(t *testing.T) {
	isolate(t)
	startFake(t, Options{Name: "dock"})
	meeting := t.TempDir()
	t.Setenv("OPDOCK_TEST_MARKER", meeting)
	t.Setenv(behaviourEnv, "save and hang")
	saver := exec.Command(testBinary(t), "save", "dock", filepath.Join(snapshotsDir(), "base.snapshot"))
	if err := saver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(filepath.Join(meeting, "go"), nil, 0o600) }) // ends its child
	awaitFiles(t, meeting, 1)
	leftovers := func() int {
		if _, err := Snapshots(); err != nil {
			t.Fatal(err)
		}
		found, err := os.ReadDir(snapshotsDir())
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if leftovers() != 1 {
		t.Error("a save that runs lost its files")
	}
	_ = saver.Process.Kill()
	_ = saver.Wait()
	if leftovers() != 0 {
		t.Error("the files of a killed save are still there")
	}
}

func TestAHeaderCannotControlATerminal(t *testing.T) {
	isolate(t)
	path := filepath.Join(t.TempDir(), "odd.snapshot")
	header := `{"kubernetes":"v1.36.3\u001b[2J","cluster":"a\u001b]0;title\u0007b\nc","emulated":"\u009b31m"}`
	if err := os.WriteFile(path, []byte(snapshotMagic+"1\n"+header+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSnapshot(path)
	if err != nil {
		t.Fatal(err)
	}
	if text := s.Kubernetes + s.Cluster + s.Emulated; strings.ContainsFunc(text, unicode.IsControl) || !strings.Contains(text, "title") {
		t.Errorf("the header says %q", text)
	}
}

func TestSaveNamesTheDirectoryThatIsFull(t *testing.T) {
	isolate(t)
	c := startFake(t, Options{Name: "dock"})
	t.Setenv(behaviourEnv, "disk full")
	dir := t.TempDir()
	_, err := c.Save(t.Context(), filepath.Join(dir, "base.snapshot"))
	if err == nil || !strings.Contains(err.Error(), "holds "+dir+" is full") || strings.Contains(err.Error(), "OPDOCK_HOME") {
		t.Errorf("got %v", err)
	}
}
