// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/prove"
)

type proveOptions struct {
	dir      string
	main     string
	scenario string
	families []string
	budget   time.Duration
	seed     uint64
	parallel int
	format   string
	reports  []string
	replay   string
	from     string
	image    string
	write    string
	page     bool
	address  string
	failFast bool
}

const formatText = "text"

var formats = []string{formatText, "json", "junit", "sarif", "html"}

// NewProve returns the verb prove.
func NewProve(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var o proveOptions
	cmd := &cobra.Command{
		Use:   "prove [FLAG]... [-- ARGUMENT...]",
		Short: "Find out whether an operator survives what production does to it",
		Long: `Builds the operator of this project, unmodified, and creates, changes and deletes its samples. The first runs
are undisturbed: the command learns what the operator does. Each further run has its own cluster and one
disturbance, and must end in the same way: the same objects with the same fields, nothing created twice, nothing
left behind, a correct status, no panic and no endless loop.

Families of disturbances:
  crash       the operator is killed after a write, before or after the response arrives, and restarted
  lost        a write takes effect, but its response is lost
  refused     a write is refused: conflict, error, timeout, too many requests, quota, webhook, revoked right
  stale       one watch lags behind while everything else continues; a restart with an older list, if the
              operator's client accepts one
  unobserved  the operator sees only the end of a change that is reverted, of a step, or of a replaced resource
  slow        each response takes a second; watches break, and clients list again
  drift       children are edited, relabelled, orphaned or deleted; a status is wiped; a finalizer blocks
  pods        simulated pods crash, are never ready, cannot pull their images, are deleted, lose their node;
              then they recover
  order       the operator starts late; resources are recreated at once; a deletion is in the foreground; two
              compete for a child
  input       values from the CRD's schema: valid, at their limits, and meaningful but wrong; then reverted
  upgrade     with --upgrade-from: this release takes over the objects of an earlier one; then a downgrade

The most useful disturbances come first, so even a small --budget finds most defects. Each finding is run again
up to three times. A finding that does not happen again twice is reported as flaky, and does not fail the command.

Pods are simulated: communication between the operator and its application is not tested.

A project without samples needs a scenario. --write-scenario creates one from the schemas of its CRDs, for you to
complete. With samples, it writes the scenario that the command runs by default.

--replay runs the disturbance of a finding again, with the scenario, main package and arguments of the campaign
unless others are given. It prints the run as it happens: writes, the fault and what follows. With --page, it then
shows the run on a page, until you press Ctrl-C.

The undisturbed runs are recorded, and "opdock rbac" reads the recording.

The exit code is 0 if nothing was found, 1 if something was found, and 2 if the operator could not be tested,
no disturbed run could be judged, the campaign ended early or was interrupted, or a report could not be written.
Arguments after -- are flags of the operator.`,
		Example: `  opdock prove                                   # ten minutes, all families
  opdock prove --budget 1m --families crash,drift
  opdock prove --families upgrade --upgrade-from v1.2.0
  opdock prove --families upgrade --upgrade-from v1.2.0 --upgrade-image dist/image.tar
  opdock prove --replay crash-1a2b3c             # reproduce a finding of the last campaign
  opdock prove --replay crash-1a2b3c --page      # and show the run in a browser
  opdock prove --write-scenario prove.yaml       # then edit it, and run: opdock prove --scenario prove.yaml
  opdock prove --report prove.html --report prove.sarif
  opdock prove -o json > prove.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash > 0 || dash < 0 && len(args) > 0 {
				return &cmdutil.UsageError{Message: fmt.Sprintf("prove takes no argument %q; flags of the operator go after --", args[0]), Hints: []string{cmdutil.SeeHelp(cmd)}}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd); err != nil {
				return err
			}
			if o.write != "" {
				return a.writeScenario(cmd.Context(), o)
			}
			return a.prove(cmd.Context(), o, args)
		},
	}
	flags := cmd.Flags()
	a.AddDirFlag(cmd, &o.dir)
	flags.StringVar(&o.main, "main", "", "main package of the operator (default: found in the project)")
	flags.StringVar(&o.scenario, "scenario", "", "scenario file (default: create the samples, change them and back, delete them)")
	flags.StringVar(&o.write, "write-scenario", "", "write a first scenario to this file, and run nothing; - prints it")
	flags.StringSliceVar(&o.families, "families", nil, "families to try, separated by commas (default: all)")
	flags.StringVar(&o.from, "upgrade-from", "", "earlier release to upgrade from: git ref, @VERSION, MODULE@VERSION or directory")
	flags.StringVar(&o.image, "upgrade-image", "", "image to take its program from, instead of a build: archive, directory or name")
	flags.DurationVar(&o.budget, "budget", prove.DefaultBudget, "time limit for starting runs; confirming findings may take longer")
	flags.BoolVar(&o.failFast, "fail-fast", false, "end at the first confirmed finding")
	flags.Uint64Var(&o.seed, "seed", 0, "seed for the order of equally useful runs")
	flags.IntVar(&o.parallel, "parallel", prove.DefaultParallel, "number of runs at the same time, each with its own cluster")
	flags.StringVarP(&o.format, "output", "o", formatText, "output format: "+strings.Join(formats, ", "))
	flags.StringArrayVar(&o.reports, "report", nil, "also write a .json, .xml (JUnit), .sarif, .html or .txt file; can be repeated")
	flags.StringVar(&o.replay, "replay", "", "reproduce a finding of the last campaign, by its ID")
	flags.BoolVar(&o.page, "page", false, "with --replay: serve the run as a page on loopback, until you press Ctrl-C")
	flags.StringVar(&o.address, "page-address", "", "with --page: its address, such as 127.0.0.1:8700 (default: a free port on loopback)")
	a.Complete(cmd, "families", prove.Families)
	a.Complete(cmd, "output", func() []string { return formats })
	return cmd
}

func (o *proveOptions) validate(cmd *cobra.Command) error {
	var message string
	for _, one := range o.families {
		if !slices.Contains(prove.Families(), one) {
			message = fmt.Sprintf("--families: there is no family %q; use %s", one, strings.Join(prove.Families(), ", "))
		}
	}
	for _, path := range o.reports {
		if writerFor(path) == nil {
			message = fmt.Sprintf("--report %s: the name must end in .json, .xml, .sarif, .html or .txt", path)
		}
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		// Mostly a variable of a script that is not set. To run without the flag would test something else.
		if value := flag.Value.String(); value == "" || value == "[]" {
			message = "--" + flag.Name + " is empty: give it a value, or leave it out"
		}
	})
	switch {
	case message != "":
	case !slices.Contains(formats, o.format):
		message = fmt.Sprintf("--output must be %s, not %q", strings.Join(formats, ", "), o.format)
	case o.budget <= 0:
		message = fmt.Sprintf("--budget must be more than 0, not %s", o.budget)
	case o.parallel < 1:
		message = fmt.Sprintf("--parallel must be at least 1, not %d", o.parallel)
	case o.from == "" && slices.Contains(o.families, "upgrade"):
		message = "--families upgrade needs --upgrade-from RELEASE: a tag, branch or commit of the project's repository, @VERSION of its Go module, or a directory"
	case o.from != "" && len(o.families) > 0 && !slices.Contains(o.families, "upgrade"):
		message = "--upgrade-from is for the family upgrade: add it to --families"
	case o.image != "" && o.from == "":
		message = "--upgrade-image needs --upgrade-from RELEASE, which provides the manifests and samples of the image's release"
	case o.write != "" && (o.scenario != "" || o.replay != ""):
		message = "--write-scenario cannot be used with --scenario or --replay"
	case o.page && o.replay == "":
		message = "--page needs --replay ID"
	case o.page && o.format != formatText:
		message = "--page cannot be used with --output"
	case o.address != "" && !o.page:
		message = "--page-address needs --page"
	case o.address != "" && page.CheckAddress(o.address) != nil:
		message = "--page-address: " + page.CheckAddress(o.address).Error()
	case o.replay != "" && o.from != "":
		message = "--replay cannot be used with --upgrade-from"
	case o.replay != "" && len(o.families) > 0:
		message = "--replay cannot be used with --families"
	}
	if message == "" {
		return nil
	}
	return &cmdutil.UsageError{Message: message, Hints: []string{cmdutil.SeeHelp(cmd)}}
}
