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
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/tree"
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
	flags.StringSliceVar(&o.samples, "samples", []string{samplesAll}, "which samples: all, none, or names of files, kinds and objects")
	flags.BoolVar(&o.untilReady, "until-ready", false, "end when all samples are ready, or with exit code 1 after --timeout")
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long the cluster's start and --until-ready may take, each")
	flags.BoolVar(&o.Keep, "keep", false, "leave the cluster running at the end, even if it was started here")
	a.AddOutputFlag(cmd, &o.format)
	o.page.AddFlags(cmd)
	a.Complete(cmd, "samples", sampleNames)
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
	chosen, err := chooseSamples(o.samples)
	if err != nil {
		return &cmdutil.UsageError{Message: err.Error(), Hints: []string{"samples: " + strings.Join(sampleNames(), ", ")}}
	}
	o.NamespaceOfContext = !cmd.Flags().Changed("namespace")
	t, err := a.Targets().Open(ctx, o.Which)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Leave()) }()
	r := &fleetRun{verbs: a, runOptions: o, target: t, logPath: a.logPath(t), model: tree.NewModel(), changes: page.NewChanges()}
	err = r.do(ctx, chosen)
	if err != nil && ctx.Err() != nil {
		return cmdutil.ErrQuit
	}
	return err
}

// fleetRun is one run of the fleet.
type fleetRun struct {
	verbs
	runOptions

	target  *target.Target
	logPath string
	model   *tree.Model
	goals   []goal // what has to become ready; set once the samples are applied
	// changes are what the page shows besides the tree, and pageURL is where that is; empty if there is no page.
	changes *page.Changes
	pageURL string
}

func (r *fleetRun) do(ctx context.Context, chosen []sample) error {
	d := r.NewDisplay(false)
	stop := sync.OnceFunc(d.Animate())
	defer stop()
	began := r.Now()
	step := func(doing, done string, work func() error) error {
		d.Run(doing)
		began := r.Now()
		if err := work(); err != nil {
			return err
		}
		d.Done(done, r.Now().Sub(began))
		return nil
	}
	d.Title("Running the fleet on %s", r.target.Title)
	err := step("installing the kinds", "kinds installed: "+strings.Join(kindNames(), ", "), func() error {
		if err := r.target.Reach(ctx); err != nil {
			return err
		}
		return controller.Install(ctx, r.target.Config, controller.Kinds)
	})
	if err != nil {
		return err
	}
	fleet, err := startFleet(r.target, r.logPath)
	if err != nil {
		return err
	}
	defer fleet.stop()
	closePage, err := r.servePage(fleet)
	if err != nil {
		return err
	}
	defer closePage()
	var notes []string
	if err := step("applying the samples", "samples applied to namespace "+r.target.Namespace, func() (err error) {
		r.goals, notes, err = r.applySamples(ctx, chosen)
		return err
	}); err != nil {
		return err
	}
	if err := step("looking at what there is", "watching", func() error { return watch(ctx, r.target, r.model, r.changes) }); err != nil {
		return err
	}
	stop()
	for _, note := range notes {
		d.Title("  %s", note)
	}
	if r.pageURL != "" {
		d.Title("What leads to what is shown at %s", r.pageURL)
	}
	d.Title("The controllers log to %s", r.logPath)
	return r.follow(ctx, fleet, began)
}

func kindNames() []string {
	var names []string
	for _, kind := range controller.Kinds {
		names = append(names, kind.Kind)
	}
	return names
}
