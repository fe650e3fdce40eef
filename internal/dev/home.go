// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// kubeFolder is where tools keep a kubeconfig in a home directory.
const kubeFolder = ".kube"

// makeHome prepares a home directory for the operator. It contains symbolic links to the content of the user's home,
// except for the kubeconfig, which is the operator's own: many operators read $HOME/.kube/config even if KUBECONFIG
// is set, and would change the user's own cluster. Files that the operator has written there stay.
func makeHome(dir, users, kubeconfig string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating a home directory for the operator: %w", err)
	}
	if err := dropLinks(dir); err != nil {
		return fmt.Errorf("renewing the operator's home directory: %w", err)
	}
	kube := filepath.Join(dir, kubeFolder)
	if err := os.RemoveAll(kube); err != nil {
		return fmt.Errorf("renewing the operator's home directory: %w", err)
	}
	if err := os.Mkdir(kube, 0o700); err != nil {
		return fmt.Errorf("creating a home directory for the operator: %w", err)
	}
	if err := os.Symlink(kubeconfig, filepath.Join(kube, "config")); err != nil {
		return fmt.Errorf("creating a home directory for the operator: %w", err)
	}
	if users == "" {
		return nil
	}
	entries, err := os.ReadDir(users)
	if err != nil {
		return nil //nolint:nilerr // the operator could not read it either
	}
	for _, entry := range entries {
		err := os.Symlink(filepath.Join(users, entry.Name()), filepath.Join(dir, entry.Name()))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("creating a home directory for the operator: %w", err)
		}
	}
	return nil
}

// dropLinks removes the links of an earlier session, because the user's files may have been removed since.
func dropLinks(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
