// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experimentcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/experiment"
	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/target"
)

// maxContainers keeps the policy that adds containers to a size that the server takes.
const maxContainers = 20

// outputMarkdown is a page as it stands in the documentation.
const outputMarkdown = "markdown"

var experimentFormats = append(slices.Clone(cmdutil.OutputFormats), outputMarkdown)

type experimentOptions struct {
	sizes      []string
	containers []int // set by check
	only       []string
	runs       int
	readyAfter time.Duration
	timeout    time.Duration
	format     string
	write      string
	from       string
}

// NewExperiment returns the verb experiment.
func NewExperiment(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return cmdutil.NewGroup(&cobra.Command{
		Use:   "experiment COMMAND [FLAG]...",
		Short: "Measure how controllers behave on a temporary cluster",
		Long: `Runs experiments that answer questions about controllers by measuring them on a real control plane.
Each experiment starts a temporary cluster and removes it at the end.`,
		Example: `  opdock experiment reconciles`,
	}, a.newExperimentReconciles())
}

func (a verbs) newExperimentReconciles() *cobra.Command {
	var o experimentOptions
	cmd := &cobra.Command{
		Use:   "reconciles [FLAG]...",
		Short: "Count the reconciles that a change triggers in a naive controller and in an AppService",
		Long: `Changes a Deployment in ten ways, with two and with four containers in each pod, and counts the events
that each change triggers. The changes come from the notes of someone who counted them by hand while
learning kubebuilder. The experiment makes each change to a Deployment that a naive controller watches,
and to an AppService. It shows the events, reconciles and writes next to the numbers counted by hand.
For each event it shows which fields changed and who changed them.

A full run takes about two minutes. Most of that time is spent waiting for the cluster to become quiet.`,
		Example: `  opdock experiment reconciles
  opdock experiment reconciles --only scale-1-3 --containers 2 --runs 5
  opdock experiment reconciles -o json | jq '.rows[] | {title, containers, counted}'
  opdock experiment reconciles --runs 5 --write docs/reconciles.md`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			changes, err := o.check(cmd)
			if err != nil {
				return err
			}
			if o.from != "" {
				return a.showSaved(o)
			}
			return a.experimentReconciles(cmd.Context(), o, changes)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.sizes, "containers", []string{"2", "4"}, "numbers of containers in each pod")
	flags.StringSliceVar(&o.only, "only", nil, "make only these changes, such as delete-1, scale-3-1 or recreate-4")
	flags.IntVar(&o.runs, "runs", 1, "how often to make each change; the medians are shown")
	flags.DurationVar(&o.readyAfter, "ready-after", time.Second, "how long pods take to become ready, plus up to one second")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to wait for the cluster to start")
	flags.StringVarP(&o.format, "output", "o", string(cmdutil.OutputText), "output format: text, json or markdown")
	flags.StringVar(&o.write, "write", "", "write a Markdown page to this file instead of printing the result")
	flags.StringVar(&o.from, "from", "", "show a result saved with -o json from this file, without making changes")
	a.Complete(cmd, "only", experiment.ChangeNames)
	a.Complete(cmd, "output", func() []string { return experimentFormats })
	return cmd
}

func (o *experimentOptions) check(cmd *cobra.Command) ([]experiment.Change, error) {
	usage := func(format string, args ...any) error {
		return &cmdutil.UsageError{Message: fmt.Sprintf(format, args...), Hints: []string{cmdutil.SeeHelp(cmd)}}
	}
	changes, err := experiment.ChooseChanges(o.only)
	switch {
	case err != nil:
		return nil, &cmdutil.UsageError{Message: err.Error(), Hints: []string{"changes: " + strings.Join(experiment.ChangeNames(), ", ")}}
	case o.runs < 1:
		return nil, usage("--runs must be at least 1, not %d", o.runs)
	case o.readyAfter < 0:
		return nil, usage("--ready-after must not be negative")
	case o.timeout <= 0:
		return nil, usage("--timeout must be more than 0, not %s", o.timeout)
	case !slices.Contains(experimentFormats, o.format):
		return nil, usage("--output cannot be %q: must be one of %s", o.format, strings.Join(experimentFormats, ", "))
	case o.from != "" && (cmd.Flags().Changed("only") || cmd.Flags().Changed("containers") || cmd.Flags().Changed("runs") || cmd.Flags().Changed("ready-after")):
		return nil, usage("--from shows a saved result and cannot be used with --only, --containers, --runs or --ready-after")
	case o.write != "" && cmd.Flags().Changed("output"):
		return nil, usage("--write always writes Markdown and cannot be used with --output")
	}
	for _, size := range o.sizes {
		containers, err := strconv.Atoi(size)
		switch {
		case err != nil || containers < 1 || containers > maxContainers:
			return nil, usage("--containers cannot be %q: must be a number from 1 to %d", size, maxContainers)
		case slices.Contains(o.containers, containers):
			return nil, usage("--containers contains %d twice", containers)
		}
		o.containers = append(o.containers, containers)
	}
	if len(o.containers) == 0 {
		return nil, usage("--containers needs a number")
	}
	return changes, nil
}

func (a verbs) experimentReconciles(ctx context.Context, o experimentOptions, changes []experiment.Change) (err error) {
	librarylog.Discard()
	c, err := a.startPrivate(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	config, _, err := a.Targets().LoadKubeconfig(c.Kubeconfig(), "")
	if err != nil {
		return err
	}
	d := a.NewDisplay(false)
	d.Title("Making %d changes", 2*len(changes)*len(o.containers)*o.runs)
	d.Run("preparing")
	stop := d.Animate()
	result, err := experiment.Run(ctx, config, experiment.Options{
		Changes: changes, Containers: o.containers, Runs: o.runs, ReadyAfter: o.readyAfter, Logger: logr.Discard(),
		Progress: func(p experiment.Progress) {
			d.Done(p.Message, p.Elapsed)
			d.Run(fmt.Sprintf("%d of %d done; waiting for the cluster to become quiet", p.Done, p.Total))
		},
	})
	stop()
	if err != nil {
		if ctx.Err() != nil {
			return cmdutil.ErrQuit
		}
		return err
	}
	return a.showExperiment(o, result)
}

// startPrivate starts a private cluster.
func (a verbs) startPrivate(ctx context.Context, o experimentOptions) (target.Running, error) {
	up := cmdutil.StartOptions{Timeout: o.timeout, Foreground: true}
	var err error
	if up.Binary, err = a.ControlPlaneBinary(ctx, false); err != nil {
		return nil, err
	}
	c, err := a.Start(ctx, up, "Starting a cluster for the experiment")
	switch {
	case errors.Is(err, cmdutil.ErrTimeout):
		return nil, hint.With(fmt.Errorf("the cluster was not ready after %s and was stopped", o.timeout), "wait longer: --timeout "+(2*o.timeout).String())
	case err != nil && ctx.Err() != nil:
		return nil, cmdutil.ErrQuit
	}
	return c, err
}

func (a verbs) showExperiment(o experimentOptions, result *experiment.Result) error {
	if o.write != "" {
		return a.writePage(o.write, result)
	}
	switch o.format {
	case string(cmdutil.OutputJSON):
		return a.PrintJSON(result)
	case outputMarkdown:
		page, err := result.Page()
		if err != nil {
			return err
		}
		_, err = a.Out.Write(page)
		return err
	default:
		return result.WriteText(a.Out)
	}
}

// showSaved shows a result of an earlier run.
func (a verbs) showSaved(o experimentOptions) error {
	file, err := os.Open(o.from)
	if err != nil {
		return err
	}
	defer file.Close()
	result, err := experiment.ReadResult(file)
	if err != nil {
		return hint.With(fmt.Errorf("%s: %w", o.from, err), "create one: opdock experiment reconciles -o json > "+cmdutil.ShellQuote(o.from))
	}
	return a.showExperiment(o, result)
}

func (a verbs) writePage(path string, result *experiment.Result) error {
	page, err := result.Page()
	if err != nil {
		return err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if err := filewrite.Replace(absolute, page, 0o644); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	fmt.Fprintf(a.Err, "Wrote %s\n", path)
	return nil
}
