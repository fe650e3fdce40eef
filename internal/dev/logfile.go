// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/opdock/opdock/internal/filelock"
)

// ErrBusy is returned if another session has the same state folder.
var ErrBusy = errors.New("another opdock dev is already using it")

// logFile keeps everything that the operator has logged in this session.
type logFile struct{ *os.File }

// Busy reports whether a session uses this state folder.
func Busy(stateDir string) bool {
	file, err := os.Open(logPath(stateDir))
	if err != nil {
		return false
	}
	defer file.Close() // which unlocks it
	return errors.Is(filelock.Exclusive(file), filelock.ErrHeld)
}

func logPath(stateDir string) string { return filepath.Join(stateDir, "operator.log") }

// Claim is the exclusive use of a state folder. Claim it before the cluster starts: a session that is refused after that
// would stop the cluster of another one.
type Claim struct{ log *logFile }

// NewClaim claims a state folder, and creates it. It returns ErrBusy if another session has it.
func NewClaim(stateDir string) (*Claim, error) {
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the state directory: %w", err)
	}
	file, err := os.OpenFile(logPath(stateDir), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	if err := filelock.Exclusive(file); err != nil {
		file.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("locking the log: %w", err)
	}
	return &Claim{&logFile{file}}, nil
}

// Release ends the claim. A nil claim has nothing to release.
func (c *Claim) Release() {
	if c != nil {
		c.log.Close()
	}
}

// newLog begins a new log, which can be written until the claim is released.
func (c *Claim) newLog() (*logFile, error) {
	if err := c.log.Truncate(0); err != nil {
		return nil, fmt.Errorf("truncating the log: %w", err)
	}
	return c.log, nil
}

// line adds a line. A full disk is no reason to keep it from the screen, so there is no error.
func (l *logFile) line(text string) { _, _ = l.WriteString(text + "\n") }

// tailBuffer keeps the end of a program's output.
type tailBuffer struct {
	mu      sync.Mutex
	content []byte
}

const tailSize = 4 << 10

func (b *tailBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content = append(b.content, data...)
	if over := len(b.content) - tailSize; over > 0 {
		b.content = b.content[over:]
	}
	return len(data), nil
}

func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(string(b.content))
}
