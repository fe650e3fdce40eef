// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/scaffold"
)

// NewInit returns the verb init.
func NewInit(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var (
		options scaffold.InitOptions
		flags   scaffoldFlags
	)
	cmd := &cobra.Command{
		Use:   "init --domain DOMAIN [FLAG]...",
		Short: "Create a new operator project",
		Long: `Writes a project in the layout of kubebuilder v4 to the current directory: main, manifests, Makefile,
Dockerfile, CI workflow, linter settings and PROJECT. The go.mod and go.sum are complete, so no version has
to be resolved. The project imports controller-runtime and nothing from Opdock. test/prove, a Go module of
its own, is an example of a campaign (see "opdock prove") in a Go test.

The directory can contain a Git repository, a README, a LICENSE and a go.mod, but no code. If there is an
error, no file is written. On a terminal, the command asks for values that you do not set with flags.`,
		Example: `  opdock init --domain example.com
  opdock init --domain example.com --repo github.com/me/ship-operator --owner "My Name" --license mit
  opdock init --domain example.com --multigroup      # a directory for each API group`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.RecoverProject(cmd.Context(), flags.dir); err != nil {
				return err
			}
			options.Dir, options.Year, options.OpdockVersion = flags.dir, a.Now().Year(), scaffold.OwnVersion()
			if err := a.askInit(cmd, &options); err != nil {
				return err
			}
			plan, err := scaffold.Init(options)
			if err != nil {
				return explainScaffold(err)
			}
			done := fmt.Sprintf("Created a project in %s: %s", plan.Dir, cmdutil.Files(len(plan.Changes)))
			if err := a.carryOut(cmd.Context(), plan, flags, done); err != nil {
				return err
			}
			a.suggest(flags, "add a kind, for example: "+a.inProject(flags, "create api", "--group ship --version v1 --kind Frigate"))
			return nil
		},
	}
	a.addScaffoldFlags(cmd, &flags)
	cmd.Flags().StringVar(&options.Domain, "domain", "", "domain of the API groups")
	cmd.Flags().StringVar(&options.Repo, "repo", "", "path of the Go module (default: from go.mod, or DOMAIN/DIRECTORY)")
	cmd.Flags().StringVar(&options.ProjectName, "project-name", "", "prefix for the names of deployed objects (default: the name of the directory)")
	cmd.Flags().StringVar(&options.Owner, "owner", "", "copyright owner")
	cmd.Flags().StringVar(&options.License, "license", scaffold.Licenses[0],
		"license header of Go files: "+strings.Join(scaffold.Licenses, ", ")+", or a file")
	cmd.Flags().BoolVar(&options.MultiGroup, "multigroup", false, "use a separate directory for each API group")
	// Known from elsewhere, and without a meaning here: this program brings its own compiler checks, and all modules are
	// named in go.mod already.
	cmd.Flags().Bool("skip-go-version-check", false, "")
	cmd.Flags().Bool("fetch-deps", true, "")
	cmd.Flags().String("project-version", "", "")
	cmd.Flags().String("plugins", "", "")
	for _, name := range []string{"skip-go-version-check", "fetch-deps", "project-version", "plugins"} {
		if err := cmd.Flags().MarkHidden(name); err != nil {
			panic(err) // the flag does not exist: found by any test
		}
	}
	a.Complete(cmd, "license", func() []string { return scaffold.Licenses })
	return cmd
}

// askInit asks for values that the flags do not set.
func (a verbs) askInit(cmd *cobra.Command, o *scaffold.InitOptions) error {
	if o.Domain != "" || a.Ask == nil || cmd.Flags().NFlag() > 0 && !onlyChanged(cmd, "dir", "quiet") {
		return nil
	}
	ctx := cmd.Context()
	// Before the questions, not after them.
	if err := errors.Join(scaffold.CheckInit(o.Dir), scaffold.CheckProjectName(scaffold.InitDefaults(*o).ProjectName)); err != nil {
		return explainScaffold(err)
	}
	var err error
	if o.Domain, err = a.Ask(ctx, "Domain of the API groups", "example.com", scaffold.CheckDomain); err != nil {
		return err
	}
	guess := scaffold.InitDefaults(*o)
	if o.Repo, err = a.Ask(ctx, "Path of the Go module", guess.Repo, scaffold.CheckRepo); err != nil {
		return err
	}
	if o.Owner, err = a.Ask(ctx, "Copyright owner", guess.Owner, nil); err != nil {
		return err
	}
	o.License, err = a.Ask(ctx, "License ("+strings.Join(scaffold.Licenses, ", ")+", or a file)", guess.License, scaffold.CheckLicense)
	return err
}
