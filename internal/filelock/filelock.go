// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filelock locks open files between processes. The kernel releases a lock when the file is closed, however the
// process that holds it ends, so a lock can be trusted where a process ID in a file cannot.
package filelock

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// ErrHeld means that another process, or another open file of this one, holds the lock.
var ErrHeld = errors.New("the lock is held")

// Exclusive takes the lock that no other process can have at the same time. It does not wait.
func Exclusive(file *os.File) error { return lock(file, syscall.LOCK_EX) }

// Shared takes the lock that others can share, but not together with an exclusive one. It does not wait, and a file that
// is opened for reading is enough.
func Shared(file *os.File) error { return lock(file, syscall.LOCK_SH) }

// Release gives up a lock before the file is closed.
func Release(file *os.File) error { return lock(file, syscall.LOCK_UN) }

// Await takes the exclusive lock as soon as it is free, which the kernel does not report, so that it has to be
// tried every now and then. If the context ends before, it returns ErrHeld.
func Await(ctx context.Context, file *os.File, every time.Duration) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := Exclusive(file)
		if !errors.Is(err, ErrHeld) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}

// Take creates a file and takes its exclusive lock, without waiting. The release removes the file.
func Take(path string) (release func(), err error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		switch err := Exclusive(file); {
		case err != nil:
			file.Close()
			return nil, err
		case IsAt(file, path):
			return func() { _ = os.Remove(path); file.Close() }, nil
		}
		// The last holder removed it between opening and locking.
		file.Close()
	}
}

// IsAt reports whether an open file is the one at that path.
func IsAt(file *os.File, path string) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

func lock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return err
		}
	}
}
