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
become ready with the objects of the snapshot, it keeps the objects it had, and starts again with them if it was
running.`,
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
	title := fmt.Sprintf("Starting cluster %q with the objects of snapshot %s", o.Name, snapshot)
	if before.State == cluster.Alive {
		title = fmt.Sprintf("Stopping cluster %q%s, and starting it with the objects of snapshot %s",
			o.Name, cmdutil.InParentheses(cmdutil.PIDOf(before)), snapshot)
	}
	o.From, o.Replace, o.Ephemeral = found.Path, true, before.Ephemeral
	c, err := a.Restore(ctx, o, title)
	if err != nil {
		return a.explainRestore(ctx, o, before, err)
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

// explainRestore says why a restore failed, and what became of the cluster.
func (a verbs) explainRestore(ctx context.Context, o cmdutil.StartOptions, before cluster.Status, err error) error {
	var start *cluster.StartError
	if errors.As(err, &start) && start.Reason == cluster.ReasonRestoring {
		return start
	}
	var failed *cluster.RestoreError
	stopped := errors.As(err, &failed)
	why := a.ExplainStart(ctx, o, before.Dir, err)
	if ctx.Err() != nil {
		why = errors.New("interrupted: the snapshot is not restored")
	}
	now, findErr := a.Dock.Find(o.Name)
	switch {
	case findErr != nil:
		return errors.Join(why, findErr)
	case stopped && failed.NotStarted == nil:
		return errors.Join(why, fmt.Errorf("cluster %q runs again with the objects that it had before", o.Name))
	case now.State == cluster.Stopped || now.State == cluster.Dead || stopped:
		return errors.Join(why, hint.With(fmt.Errorf("cluster %q is stopped and has the objects that it had before", o.Name),
			"start it: "+a.Command("up", o.Name)))
	}
	return why
}
