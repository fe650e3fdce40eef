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

func NewDelete(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return cmdutil.NewGroup(&cobra.Command{
		Use:   "delete WHAT [FLAG]...",
		Short: "Take a kind or webhooks out of a project again",
		Long: `Undoes what opdock create has done: files, lines in main and in the manifests, and the entry in PROJECT. If
somebody has edited one of the files, nothing is changed before --force or --keep-edited says what should become of it.`,
		Example: `  opdock delete api --group ship --version v1 --kind Frigate
  opdock delete webhook --group ship --version v1 --kind Frigate`,
	},
		a.newDeleteOne("api", "Take a kind out of a project again", `Removes the types, the controller, the webhooks and the manifests of a kind. On a cluster, nothing changes: use opdock
uninstall or kubectl to remove CRDs and objects.`, scaffold.DeleteAPI),
		a.newDeleteOne("webhook", "Take the webhooks of a kind out of a project again", `Removes the webhooks of a kind, and what deploys them if no other kind has any.`,
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

If somebody has edited one of the files, they are listed, nothing is changed, and the exit code is 1. --force removes
them, too. --keep-edited leaves them where they are, together with those that they need to compile, and removes the rest.`,
		Example: fmt.Sprintf(`  opdock delete %s --group ship --version v1 --kind Frigate
  opdock delete %s --group ship --version v1 --kind Frigate --force          # even what was edited
  opdock delete %s --group ship --version v1 --kind Frigate --keep-edited    # all but what was edited`, what, what, what),
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
	cmd.Flags().BoolVar(&options.Force, "force", false, "remove files that somebody has edited, too")
	cmd.Flags().BoolVar(&options.KeepEdited, "keep-edited", false, "leave files that somebody has edited, and what they need to compile")
	cmd.MarkFlagsMutuallyExclusive("force", "keep-edited")
	return cmd
}

// explainEdited says what can be done about files that somebody has edited.
func explainEdited(err error) error {
	var edited *scaffold.EditedError
	if !errors.As(err, &edited) {
		return err
	}
	hints := append(slices.Clone(edited.Files),
		"to remove them all: --force",
		"to leave them where they are, and remove the rest: --keep-edited")
	return hint.With(errors.New("nothing was deleted: somebody has edited one of these files, which need each other"), hints...)
}

// tellRemaining lists what somebody has to look at.
func (a verbs) tellRemaining(plan *scaffold.Plan, f scaffoldFlags) {
	if len(plan.Remaining) == 0 || f.quiet || f.format == cmdutil.OutputJSON {
		return
	}
	fmt.Fprintln(a.Err, "These files stay. What is generated from them is generated as long as they are there:")
	for _, name := range plan.Remaining {
		fmt.Fprintf(a.Out, "%s\n", name)
	}
}
