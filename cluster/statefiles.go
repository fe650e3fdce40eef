// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

const (
	lockFileName       = "lock"
	stateFileName      = "state.json"
	kubeconfigFileName = "kubeconfig"
	logFileName        = "controlplane.log"
)

// lockFile is DIR/lock, opened. A living control plane holds an exclusive flock on it, which the kernel
// takes back however the process ends: it can be trusted where a pid in a file cannot.
type lockFile struct {
	f *os.File
}

// holder is what a lock file says about the process that has, or had, the lock.
type holder struct {
	held    bool // by a living process, at the time of looking
	empty   bool // nothing in the file: the last process ended cleanly, or none has written yet
	pid     int  // 0: not known
	started time.Time
}

// openLock returns an error for which errors.Is(err, fs.ErrNotExist) if there is no lock file.
func openLock(dir string) (*lockFile, error) {
	// Read-only is enough for a shared lock, and looking must not change what is looked at.
	f, err := os.Open(filepath.Join(dir, lockFileName))
	if err != nil {
		return nil, err
	}
	return &lockFile{f: f}, nil
}

func (l *lockFile) Close() error { return l.f.Close() }

// look says who holds the lock. It goes on working after the file was unlinked, as an ephemeral cluster
// does when it ends.
func (l *lockFile) look() (holder, error) {
	held := false
	err := filelock.Shared(l.f)
	switch {
	case err == nil:
		// The shared lock is kept while reading, so that a control plane that starts right now cannot write
		// its pid in between and look like one that died.
		defer func() { _ = filelock.Release(l.f) }()
	case errors.Is(err, filelock.ErrHeld):
		held = true
	default:
		return holder{}, fmt.Errorf("reading %s: %w", l.f.Name(), err)
	}
	data, err := io.ReadAll(io.NewSectionReader(l.f, 0, 64<<10))
	if err != nil {
		return holder{}, fmt.Errorf("reading %s: %w", l.f.Name(), err)
	}
	h := parseHolder(data)
	h.held = held
	return h, nil
}

// parseHolder makes the best of what is there: a file cut off by a full disk is no reason to fail.
func parseHolder(data []byte) holder {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return holder{empty: true}
	}
	var content struct {
		PID     int    `json:"pid"`
		Started string `json:"started"`
	}
	_ = json.Unmarshal(data, &content)
	h := holder{}
	// 0, 1 and negative numbers mean process groups, everybody, or init, and none of these is a control plane.
	if content.PID > 1 {
		h.pid = content.PID
	}
	h.started, _ = time.Parse(time.RFC3339, content.Started)
	return h
}

// savedState is DIR/state.json, as far as this package needs it.
type savedState struct {
	Kubernetes string `json:"kubernetes"`
	Port       int    `json:"port"`
	Ephemeral  bool   `json:"ephemeral"`
	Emulated   string `json:"emulated"`
}

// readState says whether there is a state file, and what could be understood of it. To judge a damaged
// one is left to the control plane, which refuses it with a reason.
func readState(dir string) (savedState, bool, error) {
	data, err := os.ReadFile(filepath.Join(dir, stateFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return savedState{}, false, nil
	}
	if err != nil {
		return savedState{}, false, err
	}
	var s savedState
	_ = json.Unmarshal(data, &s)
	if s.Port < 1 || s.Port > 65535 {
		s.Port = 0
	}
	return s, true, nil
}
