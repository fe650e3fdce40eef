// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/opdock/opdock/internal/cachedir"
)

// assetNames are the programs that the control plane binary is when it is called by their name.
var assetNames = []string{"etcd", "kube-apiserver", "kubectl"}

// Assets returns a folder for KUBEBUILDER_ASSETS: it holds etcd, kube-apiserver and kubectl, all of them
// links to binary. Assets creates the folder if needed. Processes may call it concurrently.
func Assets(binary string) (dir string, err error) {
	if err := checkExecutable(binary); err != nil {
		return "", fmt.Errorf("creating assets: %w", err)
	}
	binary = absolute(binary)
	cache, err := cachedir.Dir(os.Getenv)
	if err != nil {
		return "", fmt.Errorf("creating assets: %w", err)
	}
	dir = filepath.Join(cache, "assets", shortHash(binary))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("creating assets: %w", err)
	}
	for _, name := range assetNames {
		if err := linkTo(binary, filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("creating assets: %w", err)
		}
	}
	return dir, nil
}

// linkTo puts a complete link in place in one step: a test that runs meanwhile finds the old or the new one.
func linkTo(target, link string) error {
	if now, err := os.Readlink(link); err == nil && now == target {
		return nil
	}
	// A new temporary folder guarantees an unused name, which os.Symlink cannot do.
	temporary, err := os.MkdirTemp(filepath.Dir(link), ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	made := filepath.Join(temporary, filepath.Base(link))
	if err := os.Symlink(target, made); err != nil {
		return err
	}
	return os.Rename(made, link)
}
