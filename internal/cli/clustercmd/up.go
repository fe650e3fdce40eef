// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/target"
)

// NewUp returns the verb up.
func NewUp(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o cmdutil.StartOptions
	cmd := &cobra.Command{
		Use:   "up [FLAG]...",
		Short: "Start a cluster, with the objects it had before",
		Long: `Starts a Kubernetes control plane with simulated nodes and leaves it running. The command returns as
soon as a Deployment can become Available. The objects of the cluster are stored in $OPDOCK_HOME, or
in the XDG state directory if it is not set, and are still there after "opdock down" and "opdock up".
If the cluster is already running, the command succeeds, and the cluster keeps running even if
"opdock dev" or another command started it and ends. Only Ctrl-C in "opdock up --foreground" still stops it.

With --from, a new cluster starts with the objects of a snapshot: see "opdock snapshot". With --kubernetes, the
cluster behaves like an older minor version: see docs/clusters.md for what that covers. Both the version and the
admission plugins of a cluster stay the same until you change them.

If there is no control plane binary next to opdock or in $OPDOCK_CONTROLPLANE, it is built from
source once. The build takes minutes, which do not count towards --timeout.`,
		Example: `  opdock up
  opdock up --name other --nodes 3
  opdock up --name test --from base      # with the objects of snapshot "base"
  opdock up --name old --kubernetes 1.34 # behave like Kubernetes 1.34
  opdock up --ephemeral --foreground     # Ctrl-C stops the cluster and removes its state`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkUp(cmd, &o); err != nil {
				return err
			}
			return a.up(cmd, o)
		},
	}
	flags := cmd.Flags()
	a.AddNameFlag(cmd, &o.Name, a.DefaultName(), "name of the cluster; several clusters can run at the same time")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes (default: 1 for a new cluster, unchanged for an existing one)")
	flags.IntVar(&o.Port, "port", 0, "port of the API server on 127.0.0.1; 0 for another free one (default: a free port, then kept)")
	flags.BoolVar(&o.Ephemeral, "ephemeral", false, "remove the state when the cluster stops")
	flags.BoolVar(&o.Durable, "durable", false, "sync each write to disk to survive a power failure; slower")
	flags.StringVar(&o.From, "from", "", "start a new cluster with the objects of this snapshot, given by name or path")
	flags.StringVar(&o.Kubernetes, "kubernetes", "", "minor version to emulate, such as `1.34` (default: unchanged, or $"+
		kubernetesVariable+")")
	flags.DurationVar(&o.History, "history", 0, "keep old revisions readable for at least this long (default 5m)")
	flags.StringSliceVar(&o.AdmissionPlugins, "admission", nil, "`list` of admission plugins to enable beside the default ones (default: unchanged)")
	flags.BoolVar(&o.Foreground, "foreground", false, "run until Ctrl-C, then stop the cluster")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "stop the cluster and fail if it is not ready in this time")
	flags.BoolVarP(&o.Quiet, "quiet", "q", false, "do not show progress or usage hints")
	flags.BoolVarP(&o.Verbose, "verbose", "v", false, "show the log of the control plane (with --foreground)")
	return cmd
}

// kubernetesVariable selects the version of new clusters.
const kubernetesVariable = "OPDOCK_KUBERNETES"

func checkUp(cmd *cobra.Command, o *cmdutil.StartOptions) error {
	var message string
	switch flags := cmd.Flags(); {
	case flags.Changed("nodes") && (o.Nodes < 1 || o.Nodes > cmdutil.MaxNodes):
		message = fmt.Sprintf("--nodes must be between 1 and %d, not %d", cmdutil.MaxNodes, o.Nodes)
	case o.Port < 0 || o.Port > 65535:
		message = fmt.Sprintf("--port must be between 0 and 65535, not %d", o.Port)
	case o.Timeout <= 0:
		message = fmt.Sprintf("--timeout must be more than 0, not %s", o.Timeout)
	case flags.Changed("history") && o.History <= 0:
		message = fmt.Sprintf("--history must be more than 0, not %s", o.History)
	case o.Ephemeral && o.Durable:
		message = "--ephemeral and --durable cannot be used together: the state of an ephemeral cluster is removed when it stops"
	case o.Verbose && o.Quiet:
		message = "--verbose and --quiet cannot be used together"
	case o.Verbose && !o.Foreground:
		message = "--verbose needs --foreground: a cluster in the background writes its log to a file"
	default:
		return nil
	}
	return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
}

func (a verbs) up(cmd *cobra.Command, o cmdutil.StartOptions) error {
	ctx := cmd.Context()
	before, err := a.Dock.Find(o.Name)
	if err != nil {
		return err
	}
	switch {
	case before.Stopping:
		if !o.Quiet {
			fmt.Fprintf(a.Err, "Waiting until cluster %q%s has stopped\n", o.Name, cmdutil.InParentheses(cmdutil.PIDOf(before)))
		}
	// Without a PID it is about to start or to end. Start waits until that is known.
	case before.State == cluster.Alive && before.PID != 0:
		return a.alreadyUp(cmd, before, o)
	case before.State == cluster.Incomplete && o.From == "":
		message, hints := a.ExplainIncomplete(before)
		return hint.With(errors.New(message), hints...)
	}
	if cmd.Flags().Changed("port") && o.Port == 0 {
		// Without a port, the cluster would use the one from before.
		if o.Port, err = freeport.Find(); err != nil {
			return fmt.Errorf("finding a free port: %w", err)
		}
	}
	if o.From != "" {
		if o.From, err = a.snapshotForNew(o.From, before); err != nil {
			return err
		}
	}
	hasState := keepsObjects(before)
	if hasState && o.Ephemeral {
		return a.wouldLoseState(before)
	}
	// Resolved here and not in Start, so the time of a build does not count towards --timeout.
	if o.Binary, err = a.ControlPlaneBinary(ctx, o.Quiet); err != nil {
		return err
	}
	title := fmt.Sprintf("Starting cluster %q", o.Name)
	if hasState {
		title += " again"
	}
	c, err := a.Start(ctx, o, title)
	if locked := (*cluster.StartError)(nil); errors.As(err, &locked) && locked.Reason == cluster.ReasonLocked {
		// It was not alive a moment ago: another up was faster.
		if now, findErr := a.Dock.Find(o.Name); findErr == nil && now.State == cluster.Alive {
			return a.alreadyUp(cmd, now, o)
		}
	}
	if err != nil {
		return a.ExplainStart(ctx, o, before.Dir, err)
	}
	if !o.Quiet {
		a.printUsage(fmt.Sprintf("Cluster %q is ready.", o.Name), c, o)
	}
	if o.Foreground {
		return a.stayWith(ctx, c, o, before.Dir)
	}
	return nil
}

// alreadyUp is content with a cluster that runs, unless it was to be another one.
func (a verbs) alreadyUp(cmd *cobra.Command, s cluster.Status, o cmdutil.StartOptions) error {
	for _, name := range []string{"nodes", "port", "ephemeral", "durable", "foreground", "from", "kubernetes", "history", "admission"} {
		same := name == "ephemeral" && o.Ephemeral == s.Ephemeral || name == "port" && strings.HasSuffix(s.Server, fmt.Sprintf(":%d", o.Port))
		if cmd.Flags().Changed(name) && !same {
			if name == "from" {
				return hint.With(fmt.Errorf("cluster %q is already running%s, and --from is for new clusters",
					s.Name, cmdutil.InParentheses(cmdutil.PIDOf(s), s.Server)),
					"replace its objects:   "+a.Command("snapshot restore", s.Name, cmdutil.ShellQuote(o.From)),
					"start another cluster: "+a.Command("up", "another", "--from", cmdutil.ShellQuote(o.From)))
			}
			return hint.With(fmt.Errorf("--%s applies only when a cluster starts, and cluster %q is already running%s",
				name, s.Name, cmdutil.InParentheses(cmdutil.PIDOf(s), s.Server)),
				"use it as it is:       "+a.Command("kubectl", s.Name, "get nodes"),
				"stop it first:         "+a.Command("down", s.Name),
				"start another cluster: "+a.Command("up", "another"))
		}
	}
	c, err := a.Dock.Open(s.Name)
	if err != nil {
		return err
	}
	// Otherwise it would end with opdock dev, for example, if that started it.
	if err := c.Keep(); err != nil {
		return err
	}
	if o.Quiet {
		return nil
	}
	a.printUsage(fmt.Sprintf("Cluster %q is already running%s.", s.Name, cmdutil.InParentheses(cmdutil.PIDOf(s), s.Server)), c, o)
	return nil
}

// snapshotForNew returns the path of the snapshot that a new cluster starts from.
func (a verbs) snapshotForNew(given string, before cluster.Status) (string, error) {
	found, err := a.findSnapshot(given, a.Dock.ReadSnapshot)
	if err != nil {
		return "", err
	}
	if keepsObjects(before) {
		return "", hint.With(fmt.Errorf("cluster %q has objects from an earlier run, and --from is for new clusters", before.Name),
			"replace its objects:  "+a.Command("snapshot restore", before.Name, cmdutil.ShellQuote(given)),
			"start a new cluster:  "+a.Command("up", "another", "--from", cmdutil.ShellQuote(given)))
	}
	return found.Path, nil
}

// keepsObjects reports whether a cluster has objects that it starts with again.
func keepsObjects(s cluster.Status) bool {
	return s.State != cluster.NeverStarted && s.State != cluster.Incomplete && !s.Ephemeral
}

// wouldLoseState refuses to start a cluster as ephemeral whose state was meant to last: its next stop would remove it.
func (a verbs) wouldLoseState(s cluster.Status) error {
	return hint.With(fmt.Errorf("cluster %q has objects from an earlier run, and --ephemeral would remove them when it stops", s.Name),
		"keep the objects:            "+a.Command("up", s.Name),
		"remove them now:             "+a.Command("down", s.Name, "--delete"),
		"start an ephemeral cluster:  "+a.Command("up", "another", "--ephemeral"))
}

func (a verbs) printUsage(title string, c target.Running, o cmdutil.StartOptions) {
	stopIt := a.Command("down", o.Name)
	if o.Foreground {
		stopIt = "Ctrl-C"
	}
	fmt.Fprintf(a.Out, `
%s

  use it:   export KUBECONFIG=%s
            %s
  stop it:  %s
`, title, cmdutil.ShellQuote(c.Kubeconfig()), a.Command("kubectl", o.Name, "get nodes"), stopIt)
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
	// opdock down in another terminal may have stopped it, which is the same as Ctrl-C here.
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
