// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/scaffold"
)

// NewDelete returns the verb delete.
func NewDelete(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return cmdutil.NewGroup(&cobra.Command{
		Use:   "delete COMMAND [FLAG]...",
		Short: "Remove a kind or its webhooks from a project",
		Long: `Reverts "opdock create": removes the files, the lines in main and in the manifests, and the entry in PROJECT.
If you have edited one of the files, nothing is changed until you choose --force or --keep-edited.`,
		Example: `  opdock delete api --group ship --version v1 --kind Frigate
  opdock delete webhook --group ship --version v1 --kind Frigate`,
	},
		a.newDeleteOne("api", "Remove a kind from a project", `Removes the types, the controller, the webhooks and the manifests of a kind. Objects in a cluster are not
changed: use "opdock uninstall" or kubectl to remove CRDs and custom resources.`, scaffold.DeleteAPI),
		a.newDeleteOne("webhook", "Remove the webhooks of a kind from a project", `Removes the webhooks of a kind. Also removes the manifests that deploy webhooks if no other kind has any.`,
			scaffold.DeleteWebhook),
	)
}

func (a verbs) newDeleteOne(what, summary, long string, makePlan func(scaffold.DeleteOptions) (*scaffold.Plan, error)) *cobra.Command {
	var (
		options scaffold.DeleteOptions
		name    apiName
		flags   scaffoldFlags
	)
	cmd := &cobra.Command{
		Use:   what + " --group GROUP --version VERSION --kind KIND [FLAG]...",
		Short: summary,
		Long: long + `

If one of the files has been edited, the command lists the files, changes nothing and exits with code 1.
--force removes the edited files as well. --keep-edited keeps the edited files and the files they need to
compile, and removes the rest.`,
		Example: fmt.Sprintf(`  opdock delete %s --group ship --version v1 --kind Frigate
  opdock delete %s --group ship --version v1 --kind Frigate --force          # also remove edited files
  opdock delete %s --group ship --version v1 --kind Frigate --keep-edited    # keep edited files`, what, what, what),
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := a.onKind(cmd, &name, flags, "Deleted "+what, func() (*scaffold.Plan, error) {
				options.Dir, options.Group, options.Version, options.Kind = flags.dir, name.group, name.version, name.kind
				return makePlan(options)
			})
			if err != nil {
				return explainEdited(err)
			}
			a.tellRemaining(plan, flags)
			return nil
		},
	}
	a.addKindFlags(cmd, &name, &flags)
	cmd.Flags().BoolVar(&options.Force, "force", false, "also remove files that have been edited")
	cmd.Flags().BoolVar(&options.KeepEdited, "keep-edited", false, "keep files that have been edited, and the files they need to compile")
	cmd.MarkFlagsMutuallyExclusive("force", "keep-edited")
	return cmd
}

// explainEdited adds hints about edited files.
func explainEdited(err error) error {
	var edited *scaffold.EditedError
	if !errors.As(err, &edited) {
		return err
	}
	hints := append(slices.Clone(edited.Files),
		"to remove all of them: --force",
		"to keep them and remove the rest: --keep-edited")
	return hint.With(errors.New("nothing was deleted: one of these files has been edited, and they depend on each other"), hints...)
}

// tellRemaining lists the files that the user has to check.
func (a verbs) tellRemaining(plan *scaffold.Plan, f scaffoldFlags) {
	if len(plan.Remaining) == 0 || f.quiet || f.format == cmdutil.OutputJSON {
		return
	}
	fmt.Fprintln(a.Err, "These files are kept. Code is still generated from them until you remove them:")
	for _, name := range plan.Remaining {
		fmt.Fprintf(a.Out, "%s\n", name)
	}
}
