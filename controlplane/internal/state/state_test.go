// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

const running = "v1.36.3"

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenJudgesTheFolder(t *testing.T) {
	for name, test := range map[string]struct {
		files  map[string]string
		reason fault.Reason // empty: it opens
		isNew  bool
		port   int
	}{
		"nothing there":            {isNew: true},
		"as left by a clean stop":  {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.36.3","port":4711}`, "lock": ""}, port: 4711},
		"as left by a crash":       {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.36.3","port":4711}`, "lock": `{"pid":1}`}, port: 4711},
		"older patch":              {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.36.0"}`}},
		"newer patch":              {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.36.9"}`}},
		"older minor":              {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.35.1"}`}},
		"newer minor":              {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.37.0"}`}, reason: fault.NewerState},
		"newer format":             {files: map[string]string{"state.json": `{"format":2,"kubernetes":"v1.36.3"}`}, reason: fault.NewerState},
		"state.json is no JSON":    {files: map[string]string{"state.json": `{"format":`}, reason: fault.CorruptState},
		"data without state.json":  {files: map[string]string{"etcd/member/snap/db": "x"}, reason: fault.CorruptState},
		"keys without state.json":  {files: map[string]string{"pki/ca.crt": "x"}, reason: fault.CorruptState},
		"ephemeral and killed":     {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.36.3","port":4711,"ephemeral":true}`, "etcd/db": "x"}, isNew: true},
		"ephemeral and kept":       {files: map[string]string{"state.json": `{"format":1,"kubernetes":"v1.36.3","port":4711,"ephemeral":true,"kept":true}`, "etcd/db": "x"}, port: 4711},
		"log only, start was lost": {files: map[string]string{"controlplane.log": "x", "controlplane.log.1": "x"}, isNew: true},
		"somebody else's folder":   {files: map[string]string{"thesis.txt": "x"}, reason: fault.KeptState},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, test.files)
			folder, err := Open(dir, running)
			if test.reason != "" {
				var shown *fault.Error
				if !errors.As(err, &shown) || shown.Reason != test.reason || shown.Hint == "" {
					t.Fatalf("got %v, want reason %s with a hint", err, test.reason)
				}
				for name, content := range test.files {
					if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(data) != content {
						t.Errorf("%s was touched: %q, %v", name, data, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if folder.New != test.isNew || folder.Info.Port != test.port {
				t.Errorf("new %v, port %d", folder.New, folder.Info.Port)
			}
			if err := folder.Close(true); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOneHolderAtATime(t *testing.T) {
	dir := t.TempDir()
	first, err := Open(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	var holder Holder
	data, err := os.ReadFile(filepath.Join(dir, "lock"))
	if err != nil || json.Unmarshal(data, &holder) != nil || holder.PID != os.Getpid() || holder.Started.IsZero() {
		t.Errorf("the lock says %q, %v", data, err)
	}
	var shown *fault.Error
	if _, err := Open(dir, running); !errors.As(err, &shown) || shown.Reason != fault.Locked {
		t.Errorf("the second holder: %v", err)
	}
	if err := first.Close(true); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || len(data) > 0 {
		t.Errorf("a clean stop leaves %q, %v", data, err)
	}
	second, err := Open(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Close(true); err != nil {
		t.Error(err)
	}
}

// A process that uses a cluster holds a shared lock on its kubeconfig.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	if InUse(dir) {
		t.Error("it is in use before it is ready")
	}
	if err := WriteFile(filepath.Join(dir, "kubeconfig"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if InUse(dir) {
		t.Error("it is in use by no process")
	}
	user, err := os.Open(filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(user.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	for range 2 { // to ask changes nothing
		if !InUse(dir) {
			t.Error("it is not in use")
		}
	}
	if err := user.Close(); err != nil || InUse(dir) {
		t.Errorf("it is still in use: %v", err)
	}
	for pid, kept := range map[int]bool{os.Getpid(): true, os.Getpid() + 1: false} {
		if err := WriteFile(filepath.Join(dir, "kept"), []byte(strconv.Itoa(pid))); err != nil {
			t.Fatal(err)
		}
		if InUse(dir) != kept {
			t.Errorf("kept for process %d, it is in use: %v", pid-os.Getpid(), !kept)
		}
	}
}

// A later process may have the ID of the one that was kept.
func TestOnlyOneRunIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dock")
	for range 2 {
		f, err := Open(dir, "v1.36.0")
		if err != nil {
			t.Fatal(err)
		}
		if InUse(dir) {
			t.Error("it is kept because an earlier run was")
		}
		if err := errors.Join(f.Save(), WriteFile(f.Path("kept"), []byte(strconv.Itoa(os.Getpid()))), f.Close(true)); err != nil {
			t.Fatal(err)
		}
	}
}

func stop(f *Folder) error { return f.Close(true) }

func TestWhatIsLeftBehind(t *testing.T) {
	for name, test := range map[string]struct {
		before  string // state.json of an earlier run
		choose  func(*Folder)
		end     func(*Folder) error
		remains bool
	}{
		"kept":      {choose: func(*Folder) {}, end: stop, remains: true},
		"ephemeral": {choose: func(f *Folder) { f.Info.Ephemeral = true }, end: stop},
		"ephemeral, starts again": {
			choose:  func(f *Folder) { f.Info.Ephemeral = true },
			end:     func(f *Folder) error { return errors.Join(f.Keep(), stop(f)) },
			remains: true,
		},
		"new, and the start failed":   {choose: func(*Folder) {}, end: (*Folder).Abandon},
		"old, and the start failed":   {before: `{"format":1,"kubernetes":"v1.36.3"}`, choose: func(*Folder) {}, end: (*Folder).Abandon, remains: true},
		"old, made ephemeral, failed": {before: `{"format":1,"kubernetes":"v1.36.3"}`, choose: func(f *Folder) { f.Info.Ephemeral = true }, end: (*Folder).Abandon, remains: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cluster")
			if test.before != "" {
				write(t, dir, map[string]string{"state.json": test.before})
			}
			folder, err := Open(dir, running)
			if err != nil {
				t.Fatal(err)
			}
			test.choose(folder)
			if err := folder.Save(); err != nil {
				t.Fatal(err)
			}
			if err := test.end(folder); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(dir); (err == nil) != test.remains {
				t.Errorf("the folder remains: %v, want %v", err == nil, test.remains)
			}
			left, err := filepath.Glob(dir + ".*")
			if err != nil || len(left) > 0 {
				t.Errorf("left beside it: %v, %v", left, err)
			}
		})
	}
}

func TestAStopIsAnnounced(t *testing.T) {
	dir := t.TempDir()
	folder, err := Open(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	before := folder.holder
	if err := folder.Stopping(); err != nil {
		t.Fatal(err)
	}
	before.Stopping = true
	var holder Holder
	data, err := os.ReadFile(filepath.Join(dir, "lock"))
	if err != nil || json.Unmarshal(data, &holder) != nil || holder != before {
		t.Errorf("the lock says %q, %v", data, err)
	}
	if err := folder.Close(true); err != nil {
		t.Error(err)
	}
}

func TestAnUncleanEndIsSeen(t *testing.T) {
	dir := t.TempDir()
	folder, err := Open(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(false); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || len(data) == 0 {
		t.Errorf("the lock says %q, %v", data, err)
	}
}

func TestAFailedStartLeavesItsLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	write(t, dir, map[string]string{"controlplane.log": "why"})
	folder, err := Open(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"etcd/db": "x", "pki/ca.key": "x"})
	if err := folder.Abandon(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "controlplane.log" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	folder, err := Open(dir, running)
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Save(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, folder.Path("lock"): 0o600, folder.Path("state.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}
