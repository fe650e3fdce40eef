// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release gets the source of an earlier release of a project: from its git repository, from the Go module proxy, or from a
// directory. It writes only to a directory of the caller.
package release

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/opdock/opdock/internal/gomodule"
	"github.com/opdock/opdock/internal/hint"
)

// Release is the source of a project at an earlier time.
type Release struct {
	// Name is what people call it, such as "v1.2.0 (0123456789)".
	Name string
	// Dir is the directory of the project's go.mod.
	Dir string
}

// Project is the project whose releases are wanted.
type Project struct {
	// Dir is the directory of its go.mod, and Module its module path.
	Dir, Module string
	// Env is the environment of the go command; nil means the environment of this process.
	Env []string
}

// Get gets a release, for which it may use a directory that does not exist yet. The release is a commit, tag or branch of the
// project's git repository, "@VERSION" of its Go module, "MODULE@VERSION" of another one, or the path of a directory, which starts
// with a slash or a dot.
func (p Project) Get(ctx context.Context, release, to string) (*Release, error) {
	switch module, version, isModule := moduleVersion(release); {
	case isModule && module == "":
		return p.download(ctx, p.Module, version, to)
	case isModule:
		return p.download(ctx, module, version, to)
	case filepath.IsAbs(release) || strings.HasPrefix(release, "."):
		return open(release)
	}
	return checkOut(ctx, p.Dir, release, to)
}

// open takes a directory as it is. Nothing is written to it.
func open(path string) (*Release, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", path, err)
	}
	if _, err := os.Stat(filepath.Join(dir, gomodule.File)); err != nil {
		return nil, hint.With(fmt.Errorf("%s is not the source of a project: %w", path, err), "name the directory of its go.mod")
	}
	return &Release{Name: path, Dir: dir}, nil
}
