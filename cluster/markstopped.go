// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opdock/opdock/internal/filelock"
)

// MarkStopped turns a cluster that is Dead into one that is Stopped: it empties the lock file, which still names a process
// that has ended. An empty lock file is what a clean stop leaves.
func MarkStopped(name string) error {
	s, err := Find(name)
	if err != nil {
		return err
	}
	return clearLock(filepath.Join(s.Dir, lockFileName))
}

func clearLock(path string) error {
	lock, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	// Holding the lock excludes a concurrent start, whose entry would otherwise be erased.
	err = filelock.Exclusive(lock)
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("%s is locked by a running process: the cluster has just been started again", path)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", path, err)
	}
	return lock.Truncate(0)
}
