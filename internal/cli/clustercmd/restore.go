// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
)

func (a verbs) newSnapshotRestore() *cobra.Command {
	var o cmdutil.StartOptions
	cmd := &cobra.Command{
		Use:   "restore SNAPSHOT [--name NAME] [FLAG]...",
		Short: "Replace all objects of a cluster with those of a snapshot",
		Long: `Stops the cluster if it runs, replaces all its objects with those of the snapshot, and starts it. The port, the keys
and the kubeconfig of the cluster stay the same. Objects that are not in the snapshot are gone: save them first
if you need them.

If the snapshot is damaged or was written by a newer version, the cluster is not touched. If the cluster does not
become ready with the objects of the snapshot, it keeps the objects it had.`,
		Example: `  opdock snapshot restore base
  opdock snapshot restore ./before-upgrade.snapshot --name prod-copy`,
		Args:              oneSnapshot,
		ValidArgsFunction: a.completeSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Timeout <= 0 {
				return &cmdutil.UsageError{
					Message: fmt.Sprintf("--timeout must be more than 0, not %s", o.Timeout), Hints: []string{cmdutil.SeeHelp(cmd)},
				}
			}
			return a.restore(cmd.Context(), args[0], o)
		},
	}
	a.AddNameFlag(cmd, &o.Name, a.DefaultName(), "name of the cluster")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 2*time.Minute, "stop the cluster and fail if it is not ready in this time")
	cmd.Flags().BoolVarP(&o.Quiet, "quiet", "q", false, "do not show progress")
	return cmd
}

func (a verbs) restore(ctx context.Context, snapshot string, o cmdutil.StartOptions) error {
	// Checked while the cluster still runs: a bad file is no reason to stop it.
	found, err := a.findSnapshot(snapshot, a.Dock.CheckSnapshot)
	if err != nil {
		return err
	}
	before, err := a.Dock.Find(o.Name)
	if err != nil {
		return err
	}
	if o.Binary, err = a.ControlPlaneBinary(ctx, o.Quiet); err != nil {
		return err
	}
	if before.State == cluster.Alive {
		if err := a.stopQuietly(ctx, before); err != nil {
			return err
		}
	}
	o.From, o.Replace, o.Ephemeral = found.Path, true, before.Ephemeral
	c, err := a.Start(ctx, o, fmt.Sprintf("Starting cluster %q with the objects of snapshot %s", o.Name, snapshot))
	if err != nil {
		err = a.ExplainStart(ctx, o, before.Dir, err)
		if before.State == cluster.NeverStarted || before.Ephemeral {
			return err
		}
		return errors.Join(err, hint.With(fmt.Errorf("cluster %q is stopped and has the objects that it had before", o.Name),
			"start it: "+a.Command("up", o.Name)))
	}
	if !o.Quiet {
		fmt.Fprintf(a.Out, "Cluster %q has the %s of snapshot %s.\n", o.Name, objects(found.Objects), snapshot)
		fmt.Fprintf(a.Out, "  use it:   export KUBECONFIG=%s\n", cmdutil.ShellQuote(c.Kubeconfig()))
	}
	return nil
}

// findSnapshot resolves a name or path and reads the file.
func (a verbs) findSnapshot(given string, read func(string) (cluster.Snapshot, error)) (cluster.Snapshot, error) {
	path, err := a.Dock.SnapshotFile(given)
	if err != nil {
		return cluster.Snapshot{}, err
	}
	found, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return found, a.noSnapshot(given)
	}
	return found, err
}

// stopQuietly stops a cluster that is about to start again.
func (a verbs) stopQuietly(ctx context.Context, s cluster.Status) error {
	c, err := a.Dock.Open(s.Name)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "Stopping cluster %q%s\n", s.Name, cmdutil.InParentheses(cmdutil.PIDOf(s)))
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		return hint.With(fmt.Errorf("interrupted: cluster %q is still stopping, and keeps its objects", s.Name),
			"start it again: "+a.Command("up", s.Name))
	}
}
