// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/target"
)

// startSteps are the steps of a start, in their order, and what is being done while each is under way.
var startSteps = []struct{ step, doing string }{
	{"state", "preparing the state directory"},
	{"etcd", "starting etcd"},
	{"apiserver", "starting the API server"},
	{"controllers", "starting controllers and scheduler"},
	{"nodes", "waiting for the nodes"},
}

// logFile is where a cluster keeps its log, in its state folder.
const logFile = "controlplane.log"

// StartOptions are the options to start a cluster from the command line.
type StartOptions struct {
	cluster.Options
	Foreground bool
	Quiet      bool
	Verbose    bool
	Timeout    time.Duration
}

// ErrTimeout is the cause of a context that ended because of --timeout.
var ErrTimeout = errors.New("timeout")

// Start starts a cluster and shows its progress.
func (a *App) Start(ctx context.Context, o StartOptions, title string) (target.Running, error) {
	c, cause, err := a.startWith(ctx, o, title, a.Dock.Start)
	if err != nil && cause != nil {
		return nil, cause
	}
	return c, err
}

// Restore replaces the objects of a cluster and shows the progress of its start.
func (a *App) Restore(ctx context.Context, o StartOptions, title string) (target.Running, error) {
	c, cause, err := a.startWith(ctx, o, title, a.Dock.Restore)
	if err != nil && cause != nil {
		return nil, errors.Join(cause, err) // err says what became of the cluster
	}
	return c, err
}

// startWith also returns why the context ended, if it did.
func (a *App) startWith(ctx context.Context, o StartOptions, title string,
	start func(context.Context, cluster.Options) (target.Running, error),
) (c target.Running, cause, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, ErrTimeout)
	defer cancel()

	d := a.NewDisplay(o.Quiet)
	if o.Verbose {
		o.Log = a.Err
		d.width = 0 // log lines and a line that is drawn again do not mix
	}
	d.Title("%s", title)
	o.Detach = !o.Foreground
	o.Progress = (&startProgress{display: d}).report
	d.Run(startSteps[0].doing)
	stop := d.Animate()
	defer stop()

	started := a.Now()
	if c, err = start(ctx, o.Options); err != nil {
		d.failed("not ready", a.Now().Sub(started))
		return nil, context.Cause(ctx), err
	}
	d.Done("ready", a.Now().Sub(started))
	return c, nil, nil
}

// startProgress shows finished steps, and as the running one the first that has not finished: controllers and nodes
// come up at the same time and may finish in any order.
type startProgress struct {
	display  *Display
	finished []string
}

func (s *startProgress) report(p cluster.Progress) {
	s.display.Done(p.Message, p.Elapsed)
	s.finished = append(s.finished, p.Step)
	for _, next := range startSteps {
		if !slices.Contains(s.finished, next.step) {
			s.display.Run(next.doing)
			return
		}
	}
	s.display.Run("finishing the start")
}

// AlreadyUp returns the error for a cluster that is already running.
func (a *App) AlreadyUp(s cluster.Status) error {
	return hint.With(fmt.Errorf("cluster %q is already running%s", s.Name, InParentheses(PIDOf(s), s.Server)),
		"use it:                "+a.Command("kubectl", s.Name, "get nodes"),
		"stop it:               "+a.Command("down", s.Name),
		"start another cluster: "+a.Command("up", "another"))
}

// ExplainStart turns an error of Start into a message with hints.
func (a *App) ExplainStart(ctx context.Context, o StartOptions, dir string, err error) error {
	again, longer := "start it again: "+a.Command("up", o.Name), "wait longer: "+a.Command("up", o.Name, "--timeout", (2*o.Timeout).String())
	if o.From != "" { // which another start would not have
		again, longer = "run the same command again", "wait longer: run the same command again with --timeout "+(2*o.Timeout).String()
	}
	var start *cluster.StartError
	switch {
	case ctx.Err() != nil:
		return hint.With(fmt.Errorf("interrupted: cluster %q was stopped before it was ready", o.Name), again)
	case errors.Is(err, ErrTimeout):
		return hint.With(fmt.Errorf("cluster %q was not ready after %s and was stopped", o.Name, o.Timeout),
			append(a.WhereIsTheLog(o, dir), longer)...)
	case errors.As(err, &start) && start.Reason == cluster.ReasonLocked:
		// It was not alive a moment ago: another process has started it.
		if now, findErr := a.Dock.Find(o.Name); findErr == nil && now.State == cluster.Alive {
			return a.AlreadyUp(now)
		}
	}
	if start == nil {
		return err // says itself which cluster did not start and where its log is
	}
	hints := a.WhereIsTheLog(o, dir)
	if start.Hint != "" {
		hints = []string{start.Hint}
	}
	return hint.With(fmt.Errorf("cluster %q did not start: %s", o.Name, start.Message), hints...)
}

// WhereIsTheLog returns a hint with the location of the control plane log.
func (a *App) WhereIsTheLog(o StartOptions, dir string) []string {
	switch {
	case o.Verbose:
		return nil // it has just gone by
	case o.Ephemeral:
		return []string{"the log was removed with the state; to see it: " +
			a.Command("up", o.Name, "--ephemeral", "--foreground", "--verbose")}
	default:
		return []string{"log: " + filepath.Join(dir, logFile)}
	}
}
