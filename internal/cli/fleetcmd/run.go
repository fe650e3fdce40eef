// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/run"
	"github.com/opdock/opdock/internal/target"
)

type runOptions struct {
	target.Which

	samples    []string
	untilReady bool
	format     cmdutil.OutputFormat
	page       cmdutil.PageOptions
}

// NewRun returns the verb run.
func NewRun(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [FLAG]...",
		Short: "Run the fleet and its samples on a cluster and watch them",
		Long: `Starts the cluster if it is not running, installs the CRDs of the fleet, runs the controllers in this
process and applies the samples. Then shows the objects until Ctrl-C. A terminal shows a live tree.
Other output gets a line whenever an object becomes ready or stops being ready. A web page on a
loopback address shows the same tree, and which change triggered which event, reconcile and write.

At the end, a cluster that this command started is stopped, unless you set --keep. A cluster that was
already running keeps running. The objects are kept in both cases, including your changes to samples.
The controllers log to fleet.log in the state directory of the cluster.

With --kubeconfig or --context, the fleet runs on that cluster and manages only the given namespace. CRDs of
the fleet that are already there are upgraded, but never replaced by older ones that lack some of their fields.`,
		Example: `  opdock run
  opdock run --until-ready --timeout 1m    # for CI: exit code 0 once all samples are ready
  opdock run --samples appservice,ring     # only samples with these kinds or names
  opdock run --samples none                # bring your own: opdock kubectl apply -f app.yaml
  opdock run --until-ready -o json | jq '.[] | select(.ready | not)'
  opdock run --context staging --namespace fleet-test`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return a.run(cmd, o)
		},
	}
	flags := cmd.Flags()
	a.AddNameFlag(cmd, &o.Name, a.DefaultName(), "name of the cluster; started if it is not running")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes if the cluster is started (default: as with up)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig instead")
	flags.StringVar(&o.Context, "context", "", "use the cluster of this context instead")
	flags.StringVarP(&o.Namespace, "namespace", "n", "default", "namespace for the samples; created if the cluster belongs to Opdock")
	flags.StringSliceVar(&o.samples, "samples", []string{run.AllSamples}, "samples to apply: all, none, or names of files, kinds and objects")
	flags.BoolVar(&o.untilReady, "until-ready", false, "exit when all samples are ready, or with code 1 after --timeout")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long to wait for the cluster to start, and for --until-ready")
	flags.BoolVar(&o.Keep, "keep", false, "keep the cluster running at the end, even if this command started it")
	a.AddOutputFlag(cmd, &o.format)
	o.page.AddFlags(cmd)
	a.Complete(cmd, "samples", run.SampleNames)
	return cmd
}

func (o *runOptions) check(cmd *cobra.Command) error {
	if err := cmdutil.CheckWhich(cmd, &o.Which); err != nil {
		return err
	}
	return o.page.Check(cmd)
}

func (a verbs) run(cmd *cobra.Command, o runOptions) (err error) {
	ctx := cmd.Context()
	chosen, err := run.ChooseSamples(o.samples)
	if err != nil {
		return &cmdutil.UsageError{Message: err.Error(), Hints: []string{"samples: " + strings.Join(run.SampleNames(), ", ")}}
	}
	o.NamespaceOfContext = !cmd.Flags().Changed("namespace")
	if err := o.page.CheckFree(); err != nil {
		return err // before a cluster starts
	}
	if !o.Foreign() {
		release, err := run.Claim(a.Dock.Home(), o.Name)
		if err != nil {
			return err
		}
		defer release()
	}
	t, err := a.Targets().Open(ctx, o.Which)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Leave()) }()
	err = a.runOn(ctx, t, chosen, o)
	if err != nil && ctx.Err() != nil {
		return cmdutil.ErrQuit
	}
	return err
}

func (a verbs) runOn(ctx context.Context, t *target.Target, chosen []run.Sample, o runOptions) error {
	d := a.NewDisplay(false)
	stop := sync.OnceFunc(d.Animate())
	defer stop()
	began := a.Now()
	d.Title("Running the fleet on %s", t.Title)
	session, err := run.Start(ctx, run.Options{
		Target: t, Home: a.Dock.Home(), Samples: chosen, UntilReady: o.untilReady, Timeout: o.Timeout,
		Page: o.page.Serve, PageAddress: o.page.Address,
		Step: func(doing, done string, work func() error) error {
			d.Run(doing)
			began := a.Now()
			if err := work(); err != nil {
				return err
			}
			d.Done(done, a.Now().Sub(began))
			return nil
		},
	})
	if err != nil {
		return err
	}
	defer session.Stop()
	stop()
	for _, note := range session.Notes {
		d.Title("  %s", note)
	}
	if session.PageURL != "" {
		d.Title("Live view: %s", session.PageURL)
	}
	d.Title("Controller log: %s", session.LogPath)
	return (&fleetRun{verbs: a, runOptions: o, session: session}).follow(ctx, began)
}

// fleetRun is one run of the fleet, as it is shown.
type fleetRun struct {
	verbs
	runOptions

	session *run.Session
}

// follow shows what happens until there is a reason to end, and prints how things are then.
func (r *fleetRun) follow(ctx context.Context, began time.Time) error {
	show := r.newShow(began)
	end := sync.OnceFunc(show.end)
	defer end() // a panic must not leave the terminal as it is
	err := r.session.Follow(ctx, show)
	end()
	final := r.session.Outcome()
	if printErr := r.printFinal(final); printErr != nil {
		return errors.Join(err, printErr)
	}
	switch {
	case errors.Is(err, run.ErrTimeout):
		return r.notReady(final)
	case errors.Is(err, run.ErrQuit) && !r.untilReady:
		return nil // what else could end it
	default:
		return err
	}
}
