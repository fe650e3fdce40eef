// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/opdock/opdock/controlplane/internal/fault"
)

// WriteFile writes a file that only its owner can read, all of it or nothing.
func WriteFile(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return WriteFault("writing", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	_, err = temp.Write(data)
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return WriteFault("writing", path, err)
	}
	return nil
}

// WriteFault says what could not be written, and that the disk is full if that is why.
func WriteFault(doing, path string, err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return diskFull(path, err)
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}

// Sync makes files and folders survive a power failure.
func Sync(paths ...string) error {
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("syncing: %w", err)
		}
		if err := errors.Join(file.Sync(), file.Close()); err != nil {
			return WriteFault("syncing", path, err)
		}
	}
	return nil
}

// CheckRoom returns a fault when less than this many bytes are free.
func CheckRoom(dir string, needed uint64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("looking for free space at %s: %w", dir, err)
	}
	if free := uint64(fs.Bavail) * uint64(fs.Bsize); free < needed { //nolint:unconvert // the types differ between systems
		return diskFull(dir, fmt.Errorf("%d MiB are free, %d MiB are needed", free>>20, needed>>20))
	}
	return nil
}

func diskFull(path string, cause error) error {
	return &fault.Error{
		Reason:  fault.DiskFull,
		Message: fmt.Sprintf("the disk that holds %s is full", path),
		Hint:    "free some space, or keep the state elsewhere with OPDOCK_HOME",
		Cause:   cause,
	}
}
