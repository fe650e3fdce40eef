// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/scaffold"
)

func NewInit(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var (
		options scaffold.InitOptions
		flags   scaffoldFlags
	)
	cmd := &cobra.Command{
		Use:   "init --domain DOMAIN [FLAG]...",
		Short: "Make a new operator project",
		Long: `Writes a project in the layout of kubebuilder v4 into the current folder: main, manifests, Makefile, Dockerfile,
CI workflow, linter settings, PROJECT, and go.mod and go.sum that are complete, so that nothing has to be
downloaded to find out what is needed. It imports controller-runtime and nothing of Opdock.

The folder may have a repository, a README, a LICENSE and a go.mod, but no code. Either all files are written
or none. On a terminal, what is not said by flags is asked for.`,
		Example: `  opdock init --domain example.com
  opdock init --domain example.com --repo github.com/me/ship-operator --owner "My Name" --license mit
  opdock init --domain example.com --multigroup      # folders for several groups of kinds`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.RecoverProject(cmd.Context(), flags.dir); err != nil {
				return err
			}
			options.Dir, options.Year = flags.dir, a.Now().Year()
			if err := a.askInit(cmd, &options); err != nil {
				return err
			}
			plan, err := scaffold.Init(options)
			if err != nil {
				return explainScaffold(err)
			}
			done := fmt.Sprintf("Made a project in %s: %s", plan.Dir, cmdutil.Files(len(plan.Changes)))
			if err := a.carryOut(cmd.Context(), plan, flags, done); err != nil {
				return err
			}
			a.suggest(flags, "add a kind, such as: "+a.inProject(flags, "create api", "--group ship --version v1 --kind Frigate"))
			return nil
		},
	}
	a.addScaffoldFlags(cmd, &flags)
	cmd.Flags().StringVar(&options.Domain, "domain", "", "domain that the groups of the kinds end with")
	cmd.Flags().StringVar(&options.Repo, "repo", "", "path of the Go module (default: as go.mod says, or DOMAIN/FOLDER)")
	cmd.Flags().StringVar(&options.ProjectName, "project-name", "", "begins the names of what is deployed (default: the folder's name)")
	cmd.Flags().StringVar(&options.Owner, "owner", "", "who has the copyright")
	cmd.Flags().StringVar(&options.License, "license", scaffold.Licenses[0],
		"how Go files begin: "+strings.Join(scaffold.Licenses, ", ")+", or a file")
	cmd.Flags().BoolVar(&options.MultiGroup, "multigroup", false, "keep kinds of several groups in folders of their own")
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

// askInit asks for what the flags do not say.
func (a verbs) askInit(cmd *cobra.Command, o *scaffold.InitOptions) error {
	if o.Domain != "" || a.Ask == nil || cmd.Flags().NFlag() > 0 && !onlyChanged(cmd, "dir", "quiet") {
		return nil
	}
	var err error
	if o.Domain, err = a.Ask("Domain that the groups of your kinds end with", "example.com"); err != nil {
		return err
	}
	guess := scaffold.InitDefaults(*o)
	if o.Repo, err = a.Ask("Path of the Go module", guess.Repo); err != nil {
		return err
	}
	if o.Owner, err = a.Ask("Owner of the copyright", guess.Owner); err != nil {
		return err
	}
	o.License, err = a.Ask("License ("+strings.Join(scaffold.Licenses, ", ")+")", guess.License)
	return err
}
