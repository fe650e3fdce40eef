// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
)

// upSteps are the steps of a start, in their order, and what is being done while each is under way.
var upSteps = []struct{ step, doing string }{
	{"state", "preparing the state folder"},
	{"etcd", "starting etcd"},
	{"apiserver", "starting the API server"},
	{"controllers", "starting controllers and scheduler"},
	{"nodes", "waiting for the nodes"},
}

// logFile is where a cluster keeps its log, in its state folder.
const logFile = "controlplane.log"

type upOptions struct {
	cluster.Options
	foreground bool
	quiet      bool
	verbose    bool
	timeout    time.Duration
}

func (a *App) newUp() *cobra.Command {
	var o upOptions
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
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.up(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	a.addNameFlag(cmd, &o.Name, a.defaultName(), "the cluster; several can run side by side")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes (default: 1 for a new cluster, unchanged for an old one)")
	flags.IntVar(&o.Port, "port", 0, "port of the API server on 127.0.0.1 (default: a free one, kept from then on)")
	flags.BoolVar(&o.Ephemeral, "ephemeral", false, "remove the state when the cluster stops")
	flags.BoolVar(&o.Durable, "durable", false, "survive a power failure: sync each write to disk, which is slower")
	flags.BoolVar(&o.foreground, "foreground", false, "stay until Ctrl-C, then stop the cluster")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "give up and stop if it is not ready by then")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress and print nothing when it is ready")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "show the control plane's log (with --foreground)")
	return cmd
}

func (o *upOptions) check(cmd *cobra.Command) error {
	var message string
	switch flags := cmd.Flags(); {
	case flags.Changed("nodes") && o.Nodes < 1:
		message = fmt.Sprintf("--nodes must be at least 1, not %d", o.Nodes)
	case flags.Changed("port") && (o.Port < 1 || o.Port > 65535):
		message = fmt.Sprintf("--port must be between 1 and 65535, not %d", o.Port)
	case o.timeout <= 0:
		message = fmt.Sprintf("--timeout must be more than 0, not %s", o.timeout)
	case o.Ephemeral && o.Durable:
		message = "--ephemeral and --durable exclude each other: what is removed at the end need not survive a power failure"
	case o.verbose && o.quiet:
		message = "--verbose and --quiet exclude each other"
	case o.verbose && !o.foreground:
		message = "--verbose needs --foreground: nobody is left to read the log of a cluster in the background"
	default:
		return nil
	}
	return &usageError{message: message, hints: []string{seeHelp(cmd)}}
}

func (a *App) up(ctx context.Context, o upOptions) error {
	before, err := a.Dock.Find(o.Name)
	if err != nil {
		return err
	}
	if before.State == cluster.Alive {
		return a.alreadyUp(before)
	}
	hasState := before.State != cluster.NeverStarted && !before.Ephemeral
	if hasState && o.Ephemeral {
		return a.wouldLoseState(before)
	}
	// Resolved here and not in Start, so that the time a build takes does not count for --timeout.
	if o.Binary, err = a.controlPlaneBinary(ctx, o.quiet); err != nil {
		return err
	}
	title := fmt.Sprintf("Starting cluster %q", o.Name)
	if hasState {
		title += " again"
	}
	c, err := a.start(ctx, o, title)
	if err != nil {
		return a.explainStart(ctx, o, before.Dir, err)
	}
	if !o.quiet {
		a.printUsage(c, o)
	}
	if o.foreground {
		return a.stayWith(ctx, c, o, before.Dir)
	}
	return nil
}

var errTimeout = errors.New("timeout")

func (a *App) start(ctx context.Context, o upOptions, title string) (Running, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, errTimeout)
	defer cancel()

	d := a.newDisplay(o.quiet)
	if o.verbose {
		o.Log = a.Err
		d.width = 0 // log lines and a line that is drawn again do not mix
	}
	d.title("%s", title)
	o.Detach = !o.foreground
	o.Progress = (&startProgress{display: d}).report
	d.run(upSteps[0].doing)
	stop := d.animate()
	defer stop()

	started := a.Now()
	c, err := a.Dock.Start(ctx, o.Options)
	if err != nil {
		d.failed("not ready", a.Now().Sub(started))
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	d.done("ready", a.Now().Sub(started))
	return c, nil
}

// startProgress shows finished steps, and as the running one the first that has not finished: controllers and nodes
// come up at the same time and may finish in any order.
type startProgress struct {
	display  *display
	finished []string
}

func (s *startProgress) report(p cluster.Progress) {
	s.display.done(p.Message, p.Elapsed)
	s.finished = append(s.finished, p.Step)
	for _, next := range upSteps {
		if !slices.Contains(s.finished, next.step) {
			s.display.run(next.doing)
			return
		}
	}
	s.display.run("almost there")
}

func (a *App) alreadyUp(s cluster.Status) error {
	return withHints(fmt.Errorf("cluster %q is already running%s", s.Name, inParentheses(pid(s), s.Server)),
		"use it:            "+a.command("kubectl", s.Name, "get nodes"),
		"stop it:           "+a.command("down", s.Name),
		"start another one: "+a.command("up", "another"))
}

// wouldLoseState refuses to start a cluster as ephemeral whose state was meant to last: its next stop would remove it.
func (a *App) wouldLoseState(s cluster.Status) error {
	return withHints(fmt.Errorf("cluster %q has objects from before, and --ephemeral would remove them when it stops", s.Name),
		"start it with them:      "+a.command("up", s.Name),
		"remove them now:         "+a.command("down", s.Name, "--delete"),
		"start an ephemeral one:  "+a.command("up", "another", "--ephemeral"))
}

// explainStart says why a cluster did not start. Start has stopped everything it started by then.
func (a *App) explainStart(ctx context.Context, o upOptions, dir string, err error) error {
	var start *cluster.StartError
	switch {
	case ctx.Err() != nil:
		return withHints(fmt.Errorf("interrupted: cluster %q was stopped before it was ready", o.Name),
			"start it again: "+a.command("up", o.Name))
	case errors.Is(err, errTimeout):
		return withHints(fmt.Errorf("cluster %q was not ready after %s and was stopped", o.Name, o.timeout),
			append(a.whereIsTheLog(o, dir),
				"give it more time: "+a.command("up", o.Name, "--timeout", (2*o.timeout).String()))...)
	case errors.As(err, &start) && start.Reason == cluster.ReasonLocked:
		// It was not alive a moment ago: somebody else was faster.
		if now, findErr := a.Dock.Find(o.Name); findErr == nil && now.State == cluster.Alive {
			return a.alreadyUp(now)
		}
	}
	if start == nil {
		return err // says itself which cluster did not start and where its log is
	}
	hints := a.whereIsTheLog(o, dir)
	if start.Hint != "" {
		hints = []string{start.Hint}
	}
	return withHints(fmt.Errorf("cluster %q did not start: %s", o.Name, start.Message), hints...)
}

// whereIsTheLog is a hint where to read what the control plane has logged.
func (a *App) whereIsTheLog(o upOptions, dir string) []string {
	switch {
	case o.verbose:
		return nil // it has just gone by
	case o.Ephemeral:
		return []string{"its log went with its state; to see it: " +
			a.command("up", o.Name, "--ephemeral", "--foreground", "--verbose")}
	default:
		return []string{"its log: " + filepath.Join(dir, logFile)}
	}
}

func (a *App) printUsage(c Running, o upOptions) {
	stopIt := a.command("down", o.Name)
	if o.foreground {
		stopIt = "Ctrl-C"
	}
	fmt.Fprintf(a.Out, `
Cluster %q is ready.

  use it:   export KUBECONFIG=%s
            %s
  stop it:  %s
`, o.Name, shellQuote(c.Kubeconfig()), a.command("kubectl", o.Name, "get nodes"), stopIt)
}

// stayWith waits until the user has had enough of the cluster, or the cluster has ended.
func (a *App) stayWith(ctx context.Context, c Running, o upOptions, dir string) error {
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
		return withHints(errors.New(a.describeDeath(now, "is dead")), a.whereIsTheLog(o, dir)...)
	}
	fmt.Fprintf(a.Err, "Cluster %q is stopped.\n", o.Name)
	return nil
}
