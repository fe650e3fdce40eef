// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/target"
)

// forkOptions are the flags of fork.
type forkOptions struct {
	source    string
	count     int
	ephemeral bool
	quiet     bool
	timeout   time.Duration
}

// NewFork returns the verb fork.
func NewFork(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "fork [NEW] [--name NAME] [FLAG]...",
		Short: "Start copies of a running cluster",
		Long: `Starts another cluster that has all objects of a running one, at one revision. The original keeps running and is not
changed. The copy has its own port, keys and kubeconfig, and the two clusters are independent from then on.

NEW is the name of the copy. The default is the name of the original with -fork and a number. With --count, a
number is appended to NEW as well.`,
		Example: `  opdock fork                          # dock-fork-1
  opdock fork experiment --ephemeral   # removed when it stops
  opdock fork --count 3                # three copies`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) <= 1 {
				return nil
			}
			return &cmdutil.UsageError{Message: "fork takes the name of one new cluster", Hints: []string{cmdutil.SeeHelp(cmd)}}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var message string
			switch {
			case o.count < 1:
				message = fmt.Sprintf("--count must be at least 1, not %d", o.count)
			case o.timeout <= 0:
				message = fmt.Sprintf("--timeout must be more than 0, not %s", o.timeout)
			}
			if message != "" {
				return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
			}
			return a.fork(cmd.Context(), strings.Join(args, ""), o)
		},
	}
	a.AddNameFlag(cmd, &o.source, a.DefaultName(), "name of the cluster to copy")
	flags := cmd.Flags()
	flags.IntVar(&o.count, "count", 1, "number of copies")
	flags.BoolVar(&o.ephemeral, "ephemeral", false, "remove the state of a copy when it stops")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "stop a copy and fail if it is not ready in this time")
	flags.BoolVarP(&o.quiet, "quiet", "q", false, "print only the names of the copies")
	return cmd
}

func (a verbs) fork(ctx context.Context, name string, o forkOptions) error {
	all, err := a.Dock.List()
	if err != nil {
		return err
	}
	names, err := forkNames(o.source, name, o.count, all)
	if err != nil {
		return err
	}
	// Opened once, so that an original that does not run is one error and not several.
	original, err := a.Dock.Open(o.source)
	if err != nil {
		return err
	}
	binary, err := a.ControlPlaneBinary(ctx, o.quiet)
	if err != nil {
		return err
	}
	if !o.quiet {
		fmt.Fprintf(a.Err, "Forking cluster %q\n", o.source)
	}
	return a.startForks(ctx, original, names, binary, o)
}

// forkNames returns the names of the copies. A name that was chosen must be free; by default the next free ones are taken.
func forkNames(source, chosen string, count int, all []cluster.Status) ([]string, error) {
	taken := map[string]cluster.State{}
	for _, s := range all {
		taken[s.Name] = s.State
	}
	if chosen != "" && count == 1 {
		if state, exists := taken[chosen]; exists {
			return nil, hint.With(fmt.Errorf("there is already a cluster %q (%s)", chosen, cmdutil.StateWord(state)),
				"choose another name, or none")
		}
		return []string{chosen}, nil
	}
	base := chosen
	if base == "" {
		base = source + "-fork"
	}
	var names []string
	for number := 1; len(names) < count; number++ {
		name := fmt.Sprintf("%s-%d", base, number)
		if _, exists := taken[name]; !exists {
			names = append(names, name)
		}
	}
	return names, nil
}

// startForks starts the copies, as many at a time as there are processors. One that fails does not keep the others.
func (a verbs) startForks(ctx context.Context, original target.Running, names []string, binary string, o forkOptions) error {
	type outcome struct {
		copied target.Running
		took   time.Duration
		err    error
	}
	outcomes := make([]chan outcome, len(names))
	turns := make(chan struct{}, runtime.NumCPU())
	var running sync.WaitGroup
	for i, name := range names {
		outcomes[i] = make(chan outcome, 1)
		running.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			started := a.Now()
			ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, cmdutil.ErrTimeout)
			defer cancel()
			copied, err := original.Fork(ctx, cluster.Options{Name: name, Ephemeral: o.ephemeral, Detach: true, Binary: binary})
			outcomes[i] <- outcome{copied, a.Now().Sub(started), err}
		})
	}
	defer running.Wait()
	var failures []error
	for i, name := range names {
		result := <-outcomes[i]
		switch {
		case result.err != nil && ctx.Err() != nil:
			failures = append(failures, fmt.Errorf("interrupted: cluster %q was stopped before it was ready", name))
		case result.err != nil:
			failures = append(failures, explainFork(name, result.err))
		case o.quiet:
			fmt.Fprintln(a.Out, name)
		default:
			fmt.Fprintf(a.Out, "Cluster %q is ready after %s: export KUBECONFIG=%s\n",
				name, result.took.Round(10*time.Millisecond), cmdutil.ShellQuote(result.copied.Kubeconfig()))
		}
	}
	return errors.Join(failures...)
}

func explainFork(name string, err error) error {
	var start *cluster.StartError
	if errors.As(err, &start) {
		return hint.With(fmt.Errorf("cluster %q did not start: %s", name, start.Message), start.Hint)
	}
	return fmt.Errorf("cluster %q did not start: %w", name, err)
}
