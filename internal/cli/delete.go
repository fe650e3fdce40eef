// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/scaffold"
)

func (a *App) newDelete() *cobra.Command {
	return newScaffoldVerb(&cobra.Command{
		Use:   "delete WHAT [FLAG]...",
		Short: "Take a kind or webhooks out of a project again",
		Long: `Undoes what opdock create has done: files, lines in main and in the manifests, and the entry in PROJECT. Files that
somebody has edited stay, together with those that they need to compile; they are listed, and the exit code is 1.`,
		Example: `  opdock delete api --group ship --version v1 --kind Frigate
  opdock delete webhook --group ship --version v1 --kind Frigate`,
	},
		a.newDeleteOne("api", "Take a kind out of a project again", `Removes the types, the controller, the webhooks and the manifests of a kind. On a cluster, nothing changes: use opdock
uninstall or kubectl to remove CRDs and objects.`, scaffold.DeleteAPI),
		a.newDeleteOne("webhook", "Take the webhooks of a kind out of a project again", `Removes the webhooks of a kind, and what deploys them if no other kind has any.`,
			scaffold.DeleteWebhook),
	)
}

func (a *App) newDeleteOne(what, summary, long string, makePlan func(scaffold.DeleteOptions) (*scaffold.Plan, error)) *cobra.Command {
	var (
		options scaffold.DeleteOptions
		name    apiName
		flags   scaffoldFlags
	)
	cmd := &cobra.Command{
		Use:   what + " --group GROUP --version VERSION --kind KIND [FLAG]...",
		Short: summary,
		Long: long + `

Files that somebody has edited stay, together with those that they need to compile; they are listed, and the exit
code is 1. --force removes them, too.`,
		Example: fmt.Sprintf(`  opdock delete %s --group ship --version v1 --kind Frigate
  opdock delete %s --group ship --version v1 --kind Frigate --force`, what, what),
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := a.onKind(cmd, &name, flags, "Deleted "+what, func() (*scaffold.Plan, error) {
				options.Dir, options.Group, options.Version, options.Kind = flags.dir, name.group, name.version, name.kind
				return makePlan(options)
			})
			if err != nil {
				return err
			}
			return a.tellRemaining(plan, flags)
		},
	}
	a.addKindFlags(cmd, &name, &flags)
	cmd.Flags().BoolVar(&options.Force, "force", false, "remove files that somebody has edited, too")
	return cmd
}

// tellRemaining lists what somebody has to look at.
func (a *App) tellRemaining(plan *scaffold.Plan, f scaffoldFlags) error {
	if len(plan.Remaining) == 0 {
		return nil
	}
	if f.format != outputJSON {
		fmt.Fprintln(a.Err, "These files stay, because somebody has edited them or because such a file needs them:")
		for _, name := range plan.Remaining {
			fmt.Fprintf(a.Out, "%s\n", name)
		}
	}
	return &saidError{"files remain"}
}
