// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/target"
)

// maxForks limits the copies that one command starts. Each is a control plane of its own.
const maxForks = 50

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
			case o.count < 1 || o.count > maxForks:
				message = fmt.Sprintf("--count must be between 1 and %d, not %d", maxForks, o.count)
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
	flags.IntVar(&o.count, "count", 1, fmt.Sprintf("number of copies, at most %d; each needs several hundred MiB of memory", maxForks))
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
	names, err := newForkNames(o.source, name, o.count, all)
	if err != nil {
		return err
	}
	// A name that no cluster can have is refused before anything happens.
	if _, err := a.Dock.Find(names.first()); err != nil {
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

// forkNames are the names of the copies.
type forkNames struct {
	chosen string // the only name; empty if a number is appended to base
	base   string

	mu    sync.Mutex
	taken map[string]cluster.State
	last  int // the number that was given last
}

// newForkNames prepares the names. A name that was chosen must be free; by default the next free ones are taken. What an
// incomplete copy left is no reason to refuse its name.
func newForkNames(source, chosen string, count int, all []cluster.Status) (*forkNames, error) {
	n := &forkNames{taken: map[string]cluster.State{}, base: chosen}
	for _, s := range all {
		if s.State != cluster.Incomplete {
			n.taken[s.Name] = s.State
		}
	}
	if chosen != "" && count == 1 {
		if state, exists := n.taken[chosen]; exists {
			return nil, hint.With(fmt.Errorf("there is already a cluster %q (%s)", chosen, cmdutil.StateWord(state)),
				"choose another name, or none")
		}
		n.chosen = chosen
	}
	if n.base == "" {
		// A name has at most 40 characters. The number can have three digits.
		const suffix, room = "-fork", 40 - len("-fork-999")
		n.base = strings.TrimRight(source[:min(len(source), room)], "-") + suffix
	}
	return n, nil
}

// first returns what next returns first, without using it up.
func (n *forkNames) first() string {
	if n.chosen != "" {
		return n.chosen
	}
	return fmt.Sprintf("%s-%d", n.base, 1)
}

// next returns the next name that was free when the names were prepared.
func (n *forkNames) next() string {
	if n.chosen != "" {
		return n.chosen
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		n.last++
		name := fmt.Sprintf("%s-%d", n.base, n.last)
		if _, exists := n.taken[name]; !exists {
			return name
		}
	}
}

// start forks the cluster. If another process has taken a name with a number meanwhile, it tries the next number.
func (n *forkNames) start(original target.Running, fork func(target.Running, string) (target.Running, error)) (string, target.Running, error) {
	const attempts = 100
	for attempt := 1; ; attempt++ {
		name := n.next()
		copied, err := fork(original, name)
		var start *cluster.StartError
		taken := errors.As(err, &start) && (start.Reason == cluster.ReasonLocked || start.Reason == cluster.ReasonKeptState)
		if !taken || n.chosen != "" || attempt == attempts {
			return name, copied, err
		}
	}
}

// startForks starts the copies, as many at a time as there are processors. One that fails does not keep the others.
func (a verbs) startForks(ctx context.Context, original target.Running, names *forkNames, binary string, o forkOptions) error {
	type outcome struct {
		name   string
		copied target.Running
		took   time.Duration
		err    error
	}
	outcomes := make(chan outcome, o.count)
	turns := make(chan struct{}, runtime.NumCPU())
	for range o.count {
		go func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			started := a.Now()
			name, copied, err := names.start(original, func(original target.Running, name string) (target.Running, error) {
				ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, cmdutil.ErrTimeout)
				defer cancel()
				return original.Fork(ctx, cluster.Options{Name: name, Ephemeral: o.ephemeral, Detach: true, Binary: binary})
			})
			outcomes <- outcome{name, copied, a.Now().Sub(started), err}
		}()
	}
	var failures []error
	var ready []string
	interrupted := 0
	for range o.count {
		result := <-outcomes
		switch {
		case result.err != nil && ctx.Err() != nil:
			interrupted++
		case result.err != nil:
			failures = append(failures, explainFork(result.name, result.err))
		case o.quiet:
			ready = append(ready, result.name)
		default:
			fmt.Fprintf(a.Out, "Cluster %q is ready after %s: export KUBECONFIG=%s\n",
				result.name, result.took.Round(10*time.Millisecond), cmdutil.ShellQuote(result.copied.Kubeconfig()))
		}
	}
	// Programs read the names in the order of their numbers.
	slices.SortFunc(ready, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, name := range ready {
		fmt.Fprintln(a.Out, name)
	}
	if interrupted > 0 {
		failures = append(failures, fmt.Errorf("interrupted: %d of %d copies did not start", interrupted, o.count))
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
