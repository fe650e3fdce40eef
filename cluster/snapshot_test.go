// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestForkStartsFromTheOriginal(t *testing.T) {
	isolate(t)
	original := startFake(t, Options{Name: "dev"})
	fork, err := original.Fork(t.Context(), Options{Name: "copy"})
	if err != nil {
		t.Fatal(err)
	}
	defer fork.process.kill()
	if from, err := os.ReadFile(filepath.Join(fork.Dir(), "from")); err != nil || string(from) != original.Dir() {
		t.Errorf("it starts from %q, %v", from, err)
	}
	if original.process.ended() {
		t.Error("the original has ended")
	}
	for _, o := range []Options{{From: "base.snapshot"}, {Replace: true}} {
		if _, err := original.Fork(t.Context(), o); err == nil {
			t.Errorf("forked with %+v", o)
		}
	}
}

func TestForkOfWhatDoesNotRun(t *testing.T) {
	isolate(t)
	named, private := startFake(t, Options{Name: "dev"}), startFake(t, Options{})
	named.process.kill()
	private.process.kill()
	var notRunning *NotRunningError
	if _, err := named.Fork(t.Context(), Options{}); !errors.As(err, &notRunning) || notRunning.Status.State != Dead {
		t.Errorf("a dead one: %v", err)
	}
	if _, err := private.Fork(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "has stopped") {
		t.Errorf("a private one: %v", err)
	}
	if _, err := named.Save(t.Context(), filepath.Join(t.TempDir(), "base.snapshot")); !errors.As(err, &notRunning) {
		t.Errorf("a snapshot of a dead one: %v", err)
	}
}

func TestSnapshotsByName(t *testing.T) {
	isolate(t)
	if all, err := Snapshots(); err != nil || len(all) != 0 {
		t.Errorf("before the first: %v, %v", all, err)
	}
	c := startFake(t, Options{Name: "dev"})
	for _, name := range []string{"second", "first"} {
		path, err := SnapshotFile(name)
		if err != nil {
			t.Fatal(err)
		}
		saved, err := c.Save(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		want := Snapshot{
			Name: name, Path: path, Cluster: "dev", Kubernetes: KubernetesVersion, Revision: 4711, Objects: 12,
			Created: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC), Bytes: saved.Bytes,
		}
		if saved != want || saved.Bytes == 0 {
			t.Errorf("got %+v, want %+v", saved, want)
		}
		if checked, err := CheckSnapshot(path); err != nil || checked != saved {
			t.Errorf("checked: %+v, %v", checked, err)
		}
	}
	// What else is there does not hide the good ones.
	broken := filepath.Join(snapshotsDir(), "broken.snapshot")
	if err := os.WriteFile(broken, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Snapshots()
	if len(all) != 2 || all[0].Name != "first" || all[1].Name != "second" {
		t.Errorf("listed: %+v", all)
	}
	var wrong *SnapshotError
	if !errors.As(err, &wrong) || wrong.Path != broken {
		t.Errorf("the broken one: %v", err)
	}
	if err := DeleteSnapshot("first"); err != nil {
		t.Error(err)
	}
	if err := DeleteSnapshot("first"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleted twice: %v", err)
	}
	if err := DeleteSnapshot("/elsewhere/first.snapshot"); err == nil {
		t.Error("a file elsewhere was deleted")
	}
}

func TestSaveFails(t *testing.T) {
	isolate(t)
	c := startFake(t, Options{Name: "dev"})
	path := filepath.Join(t.TempDir(), "base.snapshot")
	t.Setenv(behaviourEnv, "error NoSource")
	var start *StartError
	if _, err := c.Save(t.Context(), path); !errors.As(err, &start) || start.Reason != ReasonNoSource || start.Hint != "start it" {
		t.Errorf("with a reason: %v", err)
	}
	t.Setenv(behaviourEnv, "die")
	if _, err := c.Save(t.Context(), path); err == nil || !strings.Contains(err.Error(), "something is wrong") {
		t.Errorf("without a word: %v", err)
	}
	if exists(path) {
		t.Error("there is a file")
	}
}

func TestSnapshotFile(t *testing.T) {
	isolate(t)
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"base":            filepath.Join(snapshotsDir(), "base.snapshot"),
		"base.snapshot":   filepath.Join(working, "base.snapshot"),
		"./base":          filepath.Join(working, "base"),
		"/tmp/x.snapshot": "/tmp/x.snapshot",
	} {
		if got, err := SnapshotFile(given); err != nil || got != want {
			t.Errorf("%q: got %q, %v; want %q", given, got, err, want)
		}
	}
	for _, given := range []string{"", "Base", "a b", "-x", strings.Repeat("x", 41)} {
		if got, err := SnapshotFile(given); err == nil {
			t.Errorf("%q: got %q", given, got)
		}
	}
}

func TestBadSnapshots(t *testing.T) {
	good := filepath.Join(t.TempDir(), "good.snapshot")
	if err := writeFakeSnapshot(good, "dev"); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		content []byte
		says    string
	}{
		"empty":        {nil, "not a snapshot"},
		"another file": {[]byte("kind: List\n"), "not a snapshot"},
		"cut header":   {content[:40], "cut off"},
		"cut data":     {content[:len(content)-70], "checksum"},
		"newer":        {bytes.Replace(content, []byte("/1\n"), []byte("/2\n"), 1), "newer version"},
		"changed":      {bytes.Replace(content, []byte("some data"), []byte("same data"), 1), "checksum"},
		"changed head": {bytes.Replace(content, []byte("4711"), []byte("4712"), 1), "checksum"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "bad.snapshot")
			if err := os.WriteFile(path, test.content, 0o600); err != nil {
				t.Fatal(err)
			}
			var wrong *SnapshotError
			if _, err := CheckSnapshot(path); !errors.As(err, &wrong) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
		})
	}
	if _, err := CheckSnapshot(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}
