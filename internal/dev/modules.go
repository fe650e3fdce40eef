// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/opdock/opdock/internal/gocommand"
)

// localModules returns the folders of the operator's editable code: the project's own module,
// those of its workspace, and local replacements.
func localModules(ctx context.Context, dir string, env []string) ([]string, error) {
	roots := []string{dir}
	// Only these: listing all modules would be slower.
	for _, args := range [][]string{{"list", "-m", "-json"}, {"mod", "edit", "-json"}} {
		output, err := gocommand.Command(ctx, dir, env, args...).Output()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			continue // the build reports errors in go.mod
		case err != nil:
			return nil, fmt.Errorf("finding local modules: %w", err)
		}
		for _, found := range modulesIn(dir, output) {
			if target, err := filepath.EvalSymlinks(found); err == nil {
				found = target // walking does not follow links
			}
			if !slices.Contains(roots, found) {
				roots = append(roots, found)
			}
		}
	}
	return roots, nil
}

// modulesIn reads folders from what go list -m or go mod edit has printed.
func modulesIn(dir string, output []byte) (dirs []string) {
	decoder := json.NewDecoder(bytes.NewReader(output))
	for {
		var one struct {
			Dir     string // go list
			Replace []struct {
				New struct{ Path, Version string }
			} // go mod edit
		}
		if err := decoder.Decode(&one); err != nil {
			if !errors.Is(err, io.EOF) {
				return nil
			}
			return dirs
		}
		if one.Dir != "" {
			dirs = append(dirs, one.Dir)
		}
		for _, replaced := range one.Replace {
			if replaced.New.Version != "" {
				continue
			}
			local := replaced.New.Path
			if !filepath.IsAbs(local) {
				local = filepath.Join(dir, local)
			}
			dirs = append(dirs, filepath.Clean(local))
		}
	}
}
