// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/gomodule"
)

// recoverProject takes back what an opdock that was killed has left half written in a folder, and says so.
func (a *App) recoverProject(ctx context.Context, dir string) error {
	found, err := filewrite.Recover(ctx, dir)
	switch {
	case err != nil && ctx.Err() != nil:
		return interrupted(err)
	case err != nil:
		return withHints(err, "to keep everything as it is now, remove "+filepath.Join(dir, filewrite.JournalName))
	case len(found.Edited) > 0:
		fmt.Fprintf(a.Err, "An opdock was killed while it wrote here. It is not taken back, because somebody has edited since: %s\n", strings.Join(found.Edited, ", "))
	case len(found.TakenBack) > 0:
		fmt.Fprintf(a.Err, "An opdock was killed while it wrote here; what it had done is taken back: %s\n", files(len(found.TakenBack)))
	}
	return nil
}

// moduleFolder is the folder of the Go module around a folder, or else that folder.
func moduleFolder(dir string) string {
	start, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if module := gomodule.Dir(start); module != "" {
		return module
	}
	return dir
}
