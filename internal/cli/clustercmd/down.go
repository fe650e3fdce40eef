// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/hint"
)

type downOptions struct {
	name               string
	all, remove, quiet bool
}

// NewDown returns the verb down.
func NewDown(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o downOptions
	cmd := &cobra.Command{
		Use:   "down [--name NAME | --all] [--delete] [-q]",
		Short: "Stop a cluster and keep its objects",
		Long: `Stops the cluster cleanly and waits until it has stopped. The state of the cluster is kept, and
"opdock up" starts the cluster again with all its objects. Use --delete to remove the state as well: the
objects, the keys and the kubeconfig, and the operator's binary, log, recordings and last campaign, which
"opdock dev", "trace", "rbac" and "prove" keep for the cluster.

If the cluster is already dead, the command fails, because the cluster did not stop cleanly. With
--delete, it removes the state of the dead cluster instead.`,
		Example: `  opdock down
  opdock down --name other --delete
  opdock down --all`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.all && cmd.Flags().Changed("name") {
				return &cmdutil.UsageError{Message: "--all and --name cannot be used together", Hints: []string{cmdutil.SeeHelp(cmd)}}
			}
			if o.all {
				return a.downAll(cmd.Context(), o)
			}
			s, err := a.Dock.Find(o.name)
			if err != nil {
				return err
			}
			return a.down(cmd.Context(), s, o)
		},
	}
	a.AddNameFlag(cmd, &o.name, a.DefaultName(), "name of the cluster")
	cmd.Flags().BoolVar(&o.all, "all", false, "stop all clusters")
	cmd.Flags().BoolVar(&o.remove, "delete", false, "also remove the state: all objects, keys, kubeconfig, recordings and the last campaign")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print only errors")
	return cmd
}

// say prints what is done.
func (a verbs) say(o downOptions, to io.Writer, format string, args ...any) {
	if !o.quiet {
		fmt.Fprintf(to, format+"\n", args...)
	}
}

func (a verbs) downAll(ctx context.Context, o downOptions) error {
	list := a.Dock.List
	if o.remove {
		list = a.Dock.ListAll
	}
	all, unreadable := list()
	if len(all) == 0 && unreadable == nil {
		a.say(o, a.Out, "No clusters found.")
	}
	// One that cannot be stopped does not keep the others running.
	failures := []error{unreadable}
	for _, s := range all {
		failures = append(failures, a.down(ctx, s, o))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

func (a verbs) down(ctx context.Context, s cluster.Status, o downOptions) error {
	switch s.State {
	case cluster.Alive:
		if err := a.stop(ctx, s, o); err != nil {
			return err
		}
	case cluster.Stopped:
		if !o.remove {
			a.say(o, a.Out, "Cluster %q is already stopped.", s.Name)
		}
	case cluster.Dead:
		if !o.remove {
			return a.settleDead(s, o)
		}
		a.say(o, a.Err, "%s", a.DescribeDeath(s, "was already dead"))
	case cluster.Incomplete:
		if !o.remove {
			message, hints := a.ExplainIncomplete(s)
			return hint.With(errors.New(message), hints...)
		}
	default:
		if o.remove && exists(s.Dir) {
			return a.removeRest(s, o)
		}
		return hint.With(fmt.Errorf("cluster %q does not exist", s.Name), a.KnownClusters()...)
	}
	if !o.remove || (s.Ephemeral && s.State == cluster.Alive) {
		return nil
	}
	return a.remove(s, o)
}

// stop stops a cluster that is alive.
func (a verbs) stop(ctx context.Context, s cluster.Status, o downOptions) error {
	c, err := a.Dock.Open(s.Name)
	if err != nil {
		return err
	}
	a.say(o, a.Err, "Stopping cluster %q%s", s.Name, cmdutil.InParentheses(cmdutil.PIDOf(s)))
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop() }()
	select {
	case err = <-stopped:
	case <-ctx.Done():
		return hint.With(fmt.Errorf("interrupted: cluster %q is still stopping", s.Name),
			"check whether it has stopped: "+a.Command("status", s.Name))
	}
	if err != nil {
		return err
	}
	if s.Ephemeral {
		a.say(o, a.Out, "Cluster %q is stopped. Its state in %s has been removed.", s.Name, s.Dir)
	} else {
		a.say(o, a.Out, "Cluster %q is stopped.", s.Name)
	}
	return nil
}

// settleDead puts away what a dead cluster left: all of it if it was ephemeral, otherwise the mark that makes it count as
// dead and not as stopped.
func (a verbs) settleDead(s cluster.Status, o downOptions) error {
	death := errors.New(a.DescribeDeath(s, "was already dead"))
	if s.Ephemeral {
		return errors.Join(death, a.remove(s, o))
	}
	if err := a.Dock.MarkStopped(s.Name); err != nil {
		return errors.Join(death, fmt.Errorf("marking cluster %q as stopped: %w", s.Name, err))
	}
	return hint.With(death,
		"there was nothing to stop; the cluster is now marked as stopped",
		"start it again with all its objects: "+a.Command("up", s.Name),
		"remove its state: "+a.Command("down", s.Name, "--delete"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// removeRest removes what a start that failed has left.
func (a verbs) removeRest(s cluster.Status, o downOptions) error {
	if err := a.Dock.Delete(s.Name); err != nil {
		return err
	}
	a.say(o, a.Out, "Removed %s: the log of a start that failed.", s.Dir)
	return a.removeDevelopment(s.Name, o)
}

func (a verbs) remove(s cluster.Status, o downOptions) error {
	if err := a.Dock.Delete(s.Name); err != nil {
		return err
	}
	a.say(o, a.Out, "Removed %s: all objects of cluster %q, its keys and its kubeconfig.", s.Dir, s.Name)
	return a.removeDevelopment(s.Name, o)
}

// removeDevelopment removes what opdock dev, trace, rbac and prove keep about a cluster.
func (a verbs) removeDevelopment(name string, o downOptions) error {
	dir := a.DevStateDir(name)
	if _, err := os.Stat(dir); err != nil {
		return nil //nolint:nilerr // there is none
	}
	if dev.Busy(dir) {
		return hint.With(fmt.Errorf("%s is still used by opdock dev", dir), "stop opdock dev, then remove the directory")
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the state of opdock dev: %w", err)
	}
	a.say(o, a.Out, "Removed %s: the binary, the log, the recordings and the last campaign of the operator.", dir)
	return nil
}
