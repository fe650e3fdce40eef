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

// ClusterNameFor is a name that a cluster can have.
func ClusterNameFor(found *project.Project) string {
	const limit = 40
	return strings.Trim(found.Name[:min(len(found.Name), limit)], "-")
}

// DevStateDir is where a session keeps what it needs.
func (a *App) DevStateDir(name string) string { return filepath.Join(a.Dock.Home(), "dev", name) }

func (a *App) AddDirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", ".", "a folder of the project")
	if err := cmd.MarkFlagDirname("dir"); err != nil {
		panic(err) // the flag does not exist: a mistake in this program, found by any test that runs it
	}
}

// FindProject returns the project of a folder, and collects what it warns of.
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

// NoProject is the answer to a command line that leads to no project.
func (a *App) NoProject(err error) error {
	return &UsageError{Message: err.Error(), Hints: []string{
		"name the folder of one: --dir DIR", "or make one: " + ShellQuote(a.Program) + " init --help",
	}}
}

// RecoverProject takes back what an opdock that was killed has left half written in a folder, and says so.
func (a *App) RecoverProject(ctx context.Context, dir string) error {
	found, err := filewrite.Recover(ctx, dir)
	switch {
	case err != nil && ctx.Err() != nil:
		return Interrupted(err)
	case err != nil:
		return hint.With(err, "to keep everything as it is now, remove "+filepath.Join(dir, filewrite.JournalName))
	case len(found.Edited) > 0:
		fmt.Fprintf(a.Err, "An opdock was killed while it wrote here. It is not taken back, because somebody has edited since: %s\n", strings.Join(found.Edited, ", "))
	case len(found.TakenBack) > 0:
		fmt.Fprintf(a.Err, "An opdock was killed while it wrote here; what it had done is taken back: %s\n", Files(len(found.TakenBack)))
	}
	return nil
}

// ModuleFolder is the folder of the Go module around a folder, or else that folder.
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
