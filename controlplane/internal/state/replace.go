// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"os"
)

// The data of a cluster can be replaced by other data. Until the cluster has
// been ready with it, the old data is kept beside it and comes back if the
// start fails, be it by kill -9.
const (
	dataDir = "etcd"
	newData = "etcd.new"
	oldData = "etcd.old"
	// goneData is old data that is being removed.
	goneData = "etcd.removed"
)

// NewData is the folder to which new data is written before UseNewData.
func (f *Folder) NewData() string { return f.Path(newData) }

// UseNewData puts the new data in the place of what is there.
func (f *Folder) UseNewData() error {
	err := os.Rename(f.Path(dataDir), f.Path(oldData))
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.Rename(f.Path(newData), f.Path(dataDir))
	}
	if err != nil {
		return fmt.Errorf("putting the new data in place: %w", err)
	}
	return nil
}

// Commit makes the new data the only one: there is no way back.
func (f *Folder) Commit() error {
	err := os.Rename(f.Path(oldData), f.Path(goneData))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("putting the replaced data away: %w", err)
	}
	return nil
}

// Sweep removes the data that was replaced.
func (f *Folder) Sweep() error {
	if err := os.RemoveAll(f.Path(goneData)); err != nil {
		return fmt.Errorf("removing replaced data: %w", err)
	}
	return nil
}

// RollBack brings back the data that was replaced, unless Commit was called.
func (f *Folder) RollBack() error {
	if err := errors.Join(os.RemoveAll(f.Path(newData)), os.RemoveAll(f.Path(goneData))); err != nil {
		return fmt.Errorf("removing incomplete data: %w", err)
	}
	if _, err := os.Stat(f.Path(oldData)); err != nil {
		return nil //nolint:nilerr // nothing was replaced
	}
	if err := os.RemoveAll(f.Path(dataDir)); err != nil {
		return fmt.Errorf("removing data that was not used: %w", err)
	}
	if err := os.Rename(f.Path(oldData), f.Path(dataDir)); err != nil {
		return fmt.Errorf("putting the old data back: %w", err)
	}
	return nil
}
