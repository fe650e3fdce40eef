// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opdock/opdock/internal/filelock"
)

const deadMark = `{"pid":4711,"started":"2026-05-04T12:00:00Z"}`

// leaveDead makes the state folder of a cluster whose process was killed, and returns its lock file.
func leaveDead(t *testing.T, name string) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("OPDOCK_HOME", home)
	dir := filepath.Join(home, "clusters", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{"lock": deadMark, "state.json": `{"format":1,"kubernetes":"v1.36.3"}`} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "lock")
}

func TestMarkStoppedTurnsDeadIntoStopped(t *testing.T) {
	leaveDead(t, "lost")
	before, err := Find("lost")
	if err != nil {
		t.Fatal(err)
	}
	if err := MarkStopped("lost"); err != nil {
		t.Fatal(err)
	}
	after, err := Find("lost")
	if err != nil {
		t.Fatal(err)
	}
	if before.State != Dead || after.State != Stopped {
		t.Errorf("from %s to %s, want from Dead to Stopped", before.State, after.State)
	}
}

func TestMarkStoppedRefusesALivingCluster(t *testing.T) {
	path := leaveDead(t, "lost")
	holder, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if err := filelock.Exclusive(holder); err != nil {
		t.Fatal(err)
	}
	if err := MarkStopped("lost"); err == nil {
		t.Error("marked a cluster whose lock is held")
	}
	if left, err := os.ReadFile(path); err != nil || string(left) != deadMark {
		t.Errorf("the mark is now %q (%v)", left, err)
	}
}
