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

func NewRun(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [FLAG]...",
		Short: "Run the fleet and its samples on a cluster, and watch them",
		Long: `Starts the cluster if it does not run, installs the kinds of the fleet, runs their controllers in
this process, applies the samples, and shows what becomes of them until Ctrl-C: a tree on a terminal,
and elsewhere a line whenever an object becomes ready or ceases to be. A page on loopback, whose address is
printed, shows the same tree and beside it which change led to which event, reconcile and write.

Afterwards the cluster is as it was before: a cluster that was started here is stopped, unless --keep
is given, and one that was running goes on. Its objects are kept either way, and what you have changed
in a sample stays changed. The controllers log to fleet.log in the cluster's state folder.

With --kubeconfig or --context all of this happens on that cluster, within the namespace only.`,
		Example: `  opdock run
  opdock run --until-ready --timeout 1m    # for CI: exit code 0 once all samples are ready
  opdock run --samples appservice,ring     # only those of a kind or name
  opdock run --samples none                # your own: opdock kubectl apply -f app.yaml
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
	a.AddNameFlag(cmd, &o.Name, a.DefaultName(), "the cluster; it is started if it does not run")
	flags.IntVar(&o.Nodes, "nodes", 0, "number of simulated nodes, if the cluster is started (default: as with up)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig instead")
	flags.StringVar(&o.Context, "context", "", "use the cluster of this context of the kubeconfig instead")
	flags.StringVarP(&o.Namespace, "namespace", "n", "default", "where the samples go; opdock makes it in clusters of its own")
	flags.StringSliceVar(&o.samples, "samples", []string{run.AllSamples}, "which samples: all, none, or names of files, kinds and objects")
	flags.BoolVar(&o.untilReady, "until-ready", false, "end when all samples are ready, or with exit code 1 after --timeout")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long the cluster's start and --until-ready may take, each")
	flags.BoolVar(&o.Keep, "keep", false, "leave the cluster running at the end, even if it was started here")
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
		d.Title("What leads to what is shown at %s", session.PageURL)
	}
	d.Title("The controllers log to %s", session.LogPath)
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
