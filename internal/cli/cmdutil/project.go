// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/gomodule"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/target"
)

// ClusterNameFor returns the name of the cluster for a project. It is the name of the project unless a project in another
// directory has that cluster: then the directory's hash distinguishes them.
func (a *App) ClusterNameFor(found *project.Project) string {
	const limit = 40
	name := strings.Trim(found.Name[:min(len(found.Name), limit)], "-")
	if owner := a.ProjectOf(name); owner == "" || owner == found.Dir || gomodule.Dir(owner) != owner {
		return name
	}
	const digits = 6
	sum := sha256.Sum256([]byte(found.Dir))
	return strings.Trim(name[:min(len(name), limit-digits-1)], "-") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// projectFile is where a state directory says which project it is about.
const projectFile = "project"

// ProjectOf returns the directory of the project that has a cluster; empty if none has.
func (a *App) ProjectOf(cluster string) string {
	content, err := os.ReadFile(filepath.Join(a.DevStateDir(cluster), projectFile))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// WasDeveloped reports whether opdock has run the operator of a project, in a session or a campaign.
func (a *App) WasDeveloped(found *project.Project) bool {
	return a.ProjectOf(a.ClusterNameFor(found)) == found.Dir
}

// ClusterHere returns the cluster of the project in this directory; empty if there is none, or if opdock has not run its operator.
func (a *App) ClusterHere() string {
	found, err := project.Find(".")
	if err != nil || !a.WasDeveloped(found) {
		return ""
	}
	return a.ClusterNameFor(found)
}

// RememberProject makes a cluster the one of a project.
func (a *App) RememberProject(cluster string, found *project.Project) error {
	dir := a.DevStateDir(cluster)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating the state directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, projectFile), []byte(found.Dir+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing the state directory: %w", err)
	}
	return nil
}

// DevStateDir returns the state directory of an opdock dev session.
func (a *App) DevStateDir(name string) string { return filepath.Join(a.Dock.Home(), "dev", name) }

// DevStateDirOn returns the state directory of an opdock dev session for a project on a cluster. One of Opdock's clusters has
// one session at a time.
func (a *App) DevStateDirOn(t *target.Target, project string) string {
	if t.Ours {
		return a.DevStateDir(t.FileName)
	}
	return a.DevStateDir(t.FileName) + "-" + project
}

// AddDirFlag adds --dir, which selects the project.
func (a *App) AddDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", ".", "directory of the project, or a directory in it")
	if err := cmd.MarkFlagDirname("dir"); err != nil {
		panic(err) // the flag does not exist: a mistake in this program, found by any test that runs it
	}
}

// FindProject returns the project that contains dir. Warnings about the project are added to notes, each of them once.
func (a *App) FindProject(dir string, notes *[]string) (*project.Project, error) {
	found, err := project.Find(dir)
	if errors.As(err, new(*project.NotFoundError)) {
		return nil, a.NoProject(err)
	}
	if err != nil {
		return nil, err
	}
	found.Warn = func(message string) {
		if !slices.Contains(*notes, message) {
			*notes = append(*notes, message)
		}
	}
	return found, nil
}

// NoProject returns a usage error for a directory without a project.
func (a *App) NoProject(err error) error {
	return &UsageError{Message: err.Error(), Hints: []string{
		"select the directory of a project: --dir DIR", "or create a project: " + ShellQuote(a.Program) + " init --help",
	}}
}

// RecoverProject rolls back the changes of an opdock that was killed while writing to dir, and prints a message if there
// were any.
func (a *App) RecoverProject(ctx context.Context, dir string) error {
	if file := fileIn(dir); file != "" {
		return &UsageError{Message: file + " is a file, not a directory", Hints: []string{"select a directory: --dir DIR"}}
	}
	found, err := filewrite.Recover(ctx, dir)
	switch {
	case err != nil && ctx.Err() != nil:
		return Interrupted(err)
	case err != nil:
		return hint.With(err, "to keep the files as they are now, remove "+filepath.Join(dir, filewrite.JournalName))
	case len(found.Edited) > 0:
		fmt.Fprintf(a.Err, "A previous opdock was killed while writing this project, and its changes could not be rolled back. Edited since: %s\n", strings.Join(found.Edited, ", "))
	case len(found.TakenBack) > 0:
		fmt.Fprintf(a.Err, "A previous opdock was killed while writing this project. Its changes were rolled back: %s\n", Files(len(found.TakenBack)))
	}
	return nil
}

// fileIn returns the part of a path that is a file, so the path cannot be a directory. It is empty if no part is.
func fileIn(dir string) string {
	for part := filepath.Clean(dir); ; part = filepath.Dir(part) {
		if info, err := os.Stat(part); err == nil {
			if info.IsDir() {
				return ""
			}
			return part
		}
		if part == filepath.Dir(part) {
			return ""
		}
	}
}

// ModuleFolder returns the directory of the Go module that contains dir, or dir if there is none.
func ModuleFolder(dir string) string {
	start, err := filepath.Abs(dir)
	if err != nil || fileIn(filepath.Dir(start)) != "" {
		return dir
	}
	if module := gomodule.Dir(start); module != "" {
		return module
	}
	return dir
}
