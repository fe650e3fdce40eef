// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/gomodule"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
)

// ClusterNameFor returns the name of the cluster for a project.
func ClusterNameFor(found *project.Project) string {
	const limit = 40
	return strings.Trim(found.Name[:min(len(found.Name), limit)], "-")
}

// DevStateDir returns the state directory of an opdock dev session.
func (a *App) DevStateDir(name string) string { return filepath.Join(a.Dock.Home(), "dev", name) }

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

// ModuleFolder returns the directory of the Go module that contains dir, or dir if there is none.
func ModuleFolder(dir string) string {
	start, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if module := gomodule.Dir(start); module != "" {
		return module
	}
	return dir
}
