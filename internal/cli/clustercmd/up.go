// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/target"
)

func NewUp(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o cmdutil.StartOptions
	cmd := &cobra.Command{
		Use:   "up [FLAG]...",
		Short: "Start a cluster, or start it again with everything that was in it",
		Long: `Starts a Kubernetes control plane with simulated nodes, returns as soon as a Deployment
could become Available, and leaves the cluster running. Its objects are stored under
$OPDOCK_HOME, or else in the XDG state folder, and are there again after down and up.

If there is no control plane binary beside opdock or in $OPDOCK_CONTROLPLANE, it is built from
source, once. That takes minutes, which do not count for --timeout.`,
		Example: `  opdock up
  opdock up --name other --nodes 3
  opdock up --ephemeral --foreground     # Ctrl-C stops it and nothing stays behind`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkUp(cmd, &o); err != nil {
				return err
			}
			return a.up(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	a.AddNameFlag(cmd, &o.Name, a.DefaultName(), "the cluster; several can run side by side")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes (default: 1 for a new cluster, unchanged for an old one)")
	flags.IntVar(&o.Port, "port", 0, "port of the API server on 127.0.0.1 (default: a free one, kept from then on)")
	flags.BoolVar(&o.Ephemeral, "ephemeral", false, "remove the state when the cluster stops")
	flags.BoolVar(&o.Durable, "durable", false, "survive a power failure: sync each write to disk, which is slower")
	flags.BoolVar(&o.Foreground, "foreground", false, "stay until Ctrl-C, then stop the cluster")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "give up and stop if it is not ready by then")
	flags.BoolVarP(&o.Quiet, "quiet", "q", false, "show no progress and print nothing when it is ready")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "show the control plane's log (with --foreground)")
	return cmd
}

func checkUp(cmd *cobra.Command, o *cmdutil.StartOptions) error {
	var message string
	switch flags := cmd.Flags(); {
	case flags.Changed("nodes") && o.Nodes < 1:
		message = fmt.Sprintf("--nodes must be at least 1, not %d", o.Nodes)
	case flags.Changed("port") && (o.Port < 1 || o.Port > 65535):
		message = fmt.Sprintf("--port must be between 1 and 65535, not %d", o.Port)
	case o.Timeout <= 0:
		message = fmt.Sprintf("--timeout must be more than 0, not %s", o.Timeout)
	case o.Ephemeral && o.Durable:
		message = "--ephemeral and --durable exclude each other: what is removed at the end need not survive a power failure"
	case o.Verbose && o.Quiet:
		message = "--verbose and --quiet exclude each other"
	case o.Verbose && !o.Foreground:
		message = "--verbose needs --foreground: nobody is left to read the log of a cluster in the background"
	default:
		return nil
	}
	return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
}

func (a verbs) up(ctx context.Context, o cmdutil.StartOptions) error {
	before, err := a.Dock.Find(o.Name)
	if err != nil {
		return err
	}
	if before.State == cluster.Alive {
		return a.AlreadyUp(before)
	}
	hasState := before.State != cluster.NeverStarted && !before.Ephemeral
	if hasState && o.Ephemeral {
		return a.wouldLoseState(before)
	}
	// Resolved here and not in Start, so that the time a build takes does not count for --timeout.
	if o.Binary, err = a.ControlPlaneBinary(ctx, o.Quiet); err != nil {
		return err
	}
	title := fmt.Sprintf("Starting cluster %q", o.Name)
	if hasState {
		title += " again"
	}
	c, err := a.Start(ctx, o, title)
	if err != nil {
		return a.ExplainStart(ctx, o, before.Dir, err)
	}
	if !o.Quiet {
		a.printUsage(c, o)
	}
	if o.Foreground {
		return a.stayWith(ctx, c, o, before.Dir)
	}
	return nil
}

// wouldLoseState refuses to start a cluster as ephemeral whose state was meant to last: its next stop would remove it.
func (a verbs) wouldLoseState(s cluster.Status) error {
	return hint.With(fmt.Errorf("cluster %q has objects from before, and --ephemeral would remove them when it stops", s.Name),
		"start it with them:      "+a.Command("up", s.Name),
		"remove them now:         "+a.Command("down", s.Name, "--delete"),
		"start an ephemeral one:  "+a.Command("up", "another", "--ephemeral"))
}

func (a verbs) printUsage(c target.Running, o cmdutil.StartOptions) {
	stopIt := a.Command("down", o.Name)
	if o.Foreground {
		stopIt = "Ctrl-C"
	}
	fmt.Fprintf(a.Out, `
Cluster %q is ready.

  use it:   export KUBECONFIG=%s
            %s
  stop it:  %s
`, o.Name, cmdutil.ShellQuote(c.Kubeconfig()), a.Command("kubectl", o.Name, "get nodes"), stopIt)
}

// stayWith waits until the user has had enough of the cluster, or the cluster has ended.
func (a verbs) stayWith(ctx context.Context, c target.Running, o cmdutil.StartOptions, dir string) error {
	select {
	case <-c.Done():
	case <-ctx.Done():
		fmt.Fprintf(a.Err, "\nStopping cluster %q\n", o.Name)
		if err := c.Stop(); err != nil {
			return err
		}
	}
	// It may have ended because of somebody else: opdock down in another terminal is as good as Ctrl-C here.
	now, err := a.Dock.Find(o.Name)
	if err != nil {
		return err
	}
	if now.State == cluster.Dead {
		return hint.With(errors.New(a.DescribeDeath(now, "is dead")), a.WhereIsTheLog(o, dir)...)
	}
	fmt.Fprintf(a.Err, "Cluster %q is stopped.\n", o.Name)
	return nil
}
