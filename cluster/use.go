// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// Use marks a cluster that another process started as used by this one, until release is called or this process ends.
// A cluster that is not detached keeps running if the process that started it ends meanwhile. To use the cluster without
// this is possible, but then it may end at any time.
func (c *Cluster) Use() (release func(), err error) {
	// A running cluster always has this file, and only a start replaces it. The control plane tries the lock as well.
	file, err := os.Open(c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("using %s: %w", c.title(), err)
	}
	for err = filelock.Shared(file); errors.Is(err, filelock.ErrHeld); err = filelock.Shared(file) {
		time.Sleep(lockPoll) // it is held only for a moment, to find out whether others hold it
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", c.kubeconfig, err)
	}
	return func() { file.Close() }, nil
}

// Keep keeps a cluster running that another process started: it no longer ends with that process, only with Stop.
func (c *Cluster) Keep() error {
	status, err := inspect(c.name, c.dir)
	if err != nil {
		return err
	}
	if status.State != Alive || status.Stopping || status.PID == 0 {
		return &NotRunningError{Status: status}
	}
	// With the process ID, because the next start of the cluster is not kept.
	if err := os.WriteFile(filepath.Join(c.dir, keptFileName), []byte(strconv.Itoa(status.PID)), 0o600); err != nil {
		return fmt.Errorf("keeping %s: %w", c.title(), err)
	}
	return nil
}

// isKept reports whether a process has called Keep since the cluster started.
func (c *Cluster) isKept() bool {
	pid, err := os.ReadFile(filepath.Join(c.dir, keptFileName))
	if err != nil {
		return false
	}
	status, err := inspect(c.name, c.dir)
	return err == nil && status.State == Alive && string(pid) == strconv.Itoa(status.PID)
}

// InUse reports whether a process has called Use, or Keep.
func (c *Cluster) InUse() bool {
	if c.isKept() {
		return true
	}
	file, err := os.Open(c.kubeconfig)
	if err != nil {
		return false
	}
	defer file.Close() // which releases the lock
	return errors.Is(filelock.Exclusive(file), filelock.ErrHeld)
}
