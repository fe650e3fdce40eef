// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
)

func NewKubeconfig(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var (
		name   string
		user   string
		groups []string
	)
	cmd := &cobra.Command{
		Use:   "kubeconfig [--name NAME] [--as USER [--as-group GROUP]...]",
		Short: "Print a kubeconfig for the cluster, as administrator or as anybody else",
		Long: `Prints the administrator's kubeconfig, or with --as one whose client certificate carries
exactly that user and those groups. A service account's name gets a service account's groups,
so an operator that runs on this machine has just the permissions it will have in production.`,
		Example: `  opdock kubeconfig > dock.kubeconfig
  opdock kubeconfig --as system:serviceaccount:shop:operator > operator.kubeconfig
  opdock kubeconfig --as jane --as-group developers --as-group testers`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asSomebody := cmd.Flags().Changed("as")
			switch {
			case asSomebody && user == "":
				return &cmdutil.UsageError{Message: "--as needs the name of a user", Hints: []string{cmdutil.SeeHelp(cmd)}}
			case len(groups) > 0 && !asSomebody:
				return &cmdutil.UsageError{Message: "--as-group needs --as: a group alone is nobody", Hints: []string{cmdutil.SeeHelp(cmd)}}
			}
			c, err := a.Dock.Open(name)
			if err != nil {
				return err
			}
			var kubeconfig []byte
			if asSomebody {
				kubeconfig, err = c.KubeconfigAs(user, groups...)
			} else {
				kubeconfig, err = os.ReadFile(c.Kubeconfig())
			}
			if err != nil {
				return fmt.Errorf("making a kubeconfig for cluster %q: %w", name, err)
			}
			_, err = a.Out.Write(kubeconfig)
			return err
		},
	}
	a.AddNameFlag(cmd, &name, a.DefaultName(), "the cluster")
	cmd.Flags().StringVar(&user, "as", "", "the user instead of the administrator, for example system:serviceaccount:NAMESPACE:NAME")
	// Not a StringSlice: that would split a group at a comma, and exactly this group was asked for.
	cmd.Flags().StringArrayVar(&groups, "as-group", nil, "a group of that user; can be given several times")
	return cmd
}
