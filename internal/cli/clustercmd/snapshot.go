// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
)

// NewSnapshot returns the verb snapshot.
func NewSnapshot(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return cmdutil.NewGroup(&cobra.Command{
		Use:   "snapshot COMMAND [FLAG]...",
		Short: "Save all objects of a cluster, and restore them",
		Long: `A snapshot is one file with all objects of a cluster at one revision. You can restore it on any machine with the
same or a newer version of Opdock. Secrets are part of it; the keys and certificates of the cluster are not.

Snapshots are stored in $OPDOCK_HOME/snapshots under a name. Use a path that contains a slash or ends in
.snapshot instead of a name to store one elsewhere.`,
		Example: `  opdock snapshot save base
  opdock up --name test --from base
  opdock snapshot restore base          # return to that state`,
	}, a.newSnapshotSave(), a.newSnapshotRestore(), a.newSnapshotList(), a.newSnapshotDelete())
}

// oneSnapshot is the argument check of commands that take a snapshot.
func oneSnapshot(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return &cmdutil.UsageError{
		Message: cmd.Name() + " takes the name or the path of one snapshot", Hints: []string{cmdutil.SeeHelp(cmd)},
	}
}

// completeSnapshot completes the names of snapshots.
func (a verbs) completeSnapshot(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := a.Dock.Snapshots() // what can be read is completed
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names, cobra.ShellCompDirectiveDefault
}

func (a verbs) newSnapshotSave() *cobra.Command {
	var (
		name             string
		overwrite, quiet bool
	)
	cmd := &cobra.Command{
		Use:   "save SNAPSHOT [--name NAME] [--overwrite] [-q]",
		Short: "Save all objects of a cluster to a file",
		Long: `Saves all objects of a running cluster, at one revision. The cluster keeps running and accepts writes meanwhile.
The file is complete or does not exist, even if the disk is full. Only you can read it, because it contains the
Secrets of the cluster. With --overwrite, an existing snapshot is replaced, but no other file.`,
		Example: `  opdock snapshot save base
  opdock snapshot save base --overwrite
  opdock snapshot save ./before-upgrade.snapshot --name prod-copy`,
		Args: oneSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.save(cmd.Context(), name, args[0], overwrite, quiet)
		},
	}
	a.AddNameFlag(cmd, &name, a.DefaultName(), "name of the cluster")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace a snapshot that exists")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only errors")
	return cmd
}

func (a verbs) save(ctx context.Context, name, snapshot string, overwrite, quiet bool) error {
	path, err := a.Dock.SnapshotFile(snapshot)
	if err != nil {
		return err
	}
	// Found here, so that a build of the binary shows its progress.
	if _, err := a.ControlPlaneBinary(ctx, quiet); err != nil {
		return err
	}
	saved, err := a.Dock.Save(ctx, name, path, overwrite)
	if errors.Is(err, fs.ErrExist) {
		return hint.With(fmt.Errorf("there is already a snapshot at %s", path),
			"replace it:        --overwrite",
			"list snapshots:    "+a.Program+" snapshot list")
	}
	if err != nil {
		return err
	}
	if quiet {
		return nil
	}
	fmt.Fprintf(a.Out, "Saved %s of cluster %q at revision %d: %s (%s)\n", objects(saved.Objects), name, saved.Revision, saved.Path, size(saved.Bytes))
	return nil
}

func objects(n int64) string { return count(int(n), "object") }

// size returns a number of bytes as people read it.
func size(bytes int64) string {
	const kibi, mebi = 1 << 10, 1 << 20
	switch {
	case bytes >= 10*mebi:
		return fmt.Sprintf("%d MiB", bytes/mebi)
	case bytes >= mebi:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/mebi)
	default:
		return fmt.Sprintf("%d KiB", (bytes+kibi-1)/kibi)
	}
}

func (a verbs) newSnapshotList() *cobra.Command {
	var format cmdutil.OutputFormat
	cmd := &cobra.Command{
		Use:     "list [-o FORMAT]",
		Short:   "List the snapshots",
		Long:    "Lists the snapshots in $OPDOCK_HOME/snapshots.",
		Example: "  opdock snapshot list\n  opdock snapshot list -o json | jq -r '.[].path'",
		RunE: func(*cobra.Command, []string) error {
			// Files that cannot be read come as an error beside the others.
			all, unreadable := a.Dock.Snapshots()
			return errors.Join(a.printSnapshots(all, format), unreadable)
		},
	}
	a.AddOutputFlag(cmd, &format)
	return cmd
}

func (a verbs) printSnapshots(all []cluster.Snapshot, format cmdutil.OutputFormat) error {
	if format == cmdutil.OutputJSON {
		if all == nil {
			all = []cluster.Snapshot{} // an empty list, not null
		}
		return a.PrintJSON(all)
	}
	if len(all) == 0 {
		fmt.Fprintf(a.Err, "No snapshots found. Save one: %s snapshot save SNAPSHOT\n", cmdutil.ShellQuote(a.Program))
		return nil
	}
	table := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tCLUSTER\tVERSION\tOBJECTS\tSIZE\tCREATED")
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\n", s.Name, cmdutil.OrDash(s.Cluster), versionOf(s.Kubernetes, s.Emulated),
			s.Objects, size(s.Bytes), cmdutil.OrDash(a.Ago(s.Created)))
	}
	return table.Flush()
}

// versionOf returns the version that a cluster has for its users, and which control plane it is.
func versionOf(kubernetes, emulated string) string {
	if emulated == "" {
		return cmdutil.OrDash(kubernetes)
	}
	return fmt.Sprintf("v%s (emulated by %s)", emulated, kubernetes)
}

func (a verbs) newSnapshotDelete() *cobra.Command {
	return &cobra.Command{
		Use:               "delete SNAPSHOT",
		Short:             "Delete a snapshot",
		Long:              "Deletes a snapshot from $OPDOCK_HOME/snapshots. Clusters that were started from it are not affected.",
		Example:           "  opdock snapshot delete base",
		Args:              oneSnapshot,
		ValidArgsFunction: a.completeSnapshot,
		RunE: func(_ *cobra.Command, args []string) error {
			err := a.Dock.DeleteSnapshot(args[0])
			if errors.Is(err, fs.ErrNotExist) {
				return a.noSnapshot(args[0])
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Out, "Deleted snapshot %q.\n", args[0])
			return nil
		},
	}
}

// noSnapshot says which snapshots there are.
func (a verbs) noSnapshot(given string) error {
	return hint.With(fmt.Errorf("there is no snapshot %q", given), "list snapshots: "+cmdutil.ShellQuote(a.Program)+" snapshot list")
}
