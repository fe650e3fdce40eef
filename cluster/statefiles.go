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
	keptFileName       = "kept"
)

// lockFile is DIR/lock, opened. A living control plane holds an exclusive flock on it, which the kernel
// takes back however the process ends: it can be trusted where a pid in a file cannot.
type lockFile struct {
	f *os.File
}

// holder is the entry in a lock file about the process that holds or held the lock.
type holder struct {
	held    bool // by a living process, at the time of looking
	empty   bool // nothing in the file: the last process ended cleanly, or none has written yet
	pid     int  // 0: unknown
	started time.Time
	// stopping is true if the process is about to end.
	stopping bool
}

// openLock returns an error for which errors.Is(err, fs.ErrNotExist) if there is no lock file.
func openLock(dir string) (*lockFile, error) {
	// Read-only is enough for a shared lock, and this check must not change the file.
	f, err := os.Open(filepath.Join(dir, lockFileName))
	if err != nil {
		return nil, err
	}
	return &lockFile{f: f}, nil
}

func (l *lockFile) Close() error { return l.f.Close() }

// look returns the holder of the lock. It still works after the file was unlinked, which an ephemeral
// cluster does when it ends.
func (l *lockFile) look() (holder, error) {
	held := false
	err := filelock.Shared(l.f)
	switch {
	case err == nil:
		// The shared lock is kept while reading. Otherwise a control plane that starts now could write its
		// pid in between, and would look dead.
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

// parseHolder reads as much as it can: a file that a full disk truncated is not an error.
func parseHolder(data []byte) holder {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return holder{empty: true}
	}
	var content struct {
		PID     int    `json:"pid"`
		Started string `json:"started"`

		Stopping bool `json:"stopping"`
	}
	_ = json.Unmarshal(data, &content)
	h := holder{stopping: content.Stopping}
	// 0, 1 and negative numbers mean process groups, all processes, or init, and none of these is a control plane.
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
	// Filling is the source of the first objects, until the cluster has been ready once.
	Filling string `json:"filling"`
	// Kept means that the state of an ephemeral cluster stays for the next start.
	Kept bool `json:"kept"`
	// Durable and History are options of the last run.
	Durable bool          `json:"durable"`
	History time.Duration `json:"history"`
}

// readState reports whether there is a state file, and returns the parts it understands. The control
// plane itself refuses a damaged file with a reason.
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
