// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// keptFile has the ID of the process that is to keep running.
const keptFile = "kept"

// InUse reports whether a process that did not start the cluster uses it. Such a process holds a shared lock on the
// kubeconfig, which exists as long as the cluster runs. Or it has written the ID of this process to a file, to keep the
// cluster for good.
func InUse(dir string) bool {
	if kept, err := os.ReadFile(filepath.Join(dir, keptFile)); err == nil && string(kept) == strconv.Itoa(os.Getpid()) {
		return true
	}
	file, err := os.Open(filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return false
	}
	defer file.Close() // which releases the lock
	return errors.Is(unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}
