// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scratch creates temporary directories for the time of a command. The program removes them even if a second
// signal ends it at once: kubeconfigs and recordings in them hold keys and data.
package scratch

import (
	"errors"
	"os"
	"sync"
)

var (
	mutex sync.Mutex
	kept  = map[string]bool{}
	// over means that the program is about to end, so no further directory may be created.
	over bool
)

// errOver is returned while the program ends.
var errOver = errors.New("the program is ending")

// Make creates a temporary directory that only its owner can read, and returns how to remove it.
func Make(pattern string) (dir string, remove func(), err error) {
	mutex.Lock()
	defer mutex.Unlock()
	if over {
		return "", nil, errOver
	}
	if dir, err = os.MkdirTemp("", pattern); err != nil {
		return "", nil, err
	}
	kept[dir] = true
	return dir, func() {
		os.RemoveAll(dir)
		mutex.Lock()
		defer mutex.Unlock()
		delete(kept, dir)
	}, nil
}

// Clear removes all directories that are left. Call it only when the program is about to end.
func Clear() {
	mutex.Lock()
	defer mutex.Unlock()
	over = true
	for dir := range kept {
		os.RemoveAll(dir)
	}
}
