// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
)

// NewKubeconfig returns the verb kubeconfig.
func NewKubeconfig(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var (
		name   string
		user   string
		groups []string
	)
	cmd := &cobra.Command{
		Use:   "kubeconfig [--name NAME] [--as USER [--as-group GROUP]...]",
		Short: "Print a kubeconfig for a cluster, as administrator or as another user",
		Long: `Prints the administrator's kubeconfig. With --as, prints a kubeconfig whose client certificate
identifies that user and those groups. A service account also gets the groups of service accounts,
so an operator that you run on this machine has exactly the permissions it has in production.`,
		Example: `  opdock kubeconfig > dock.kubeconfig
  opdock kubeconfig --as system:serviceaccount:shop:operator > operator.kubeconfig
  opdock kubeconfig --as jane --as-group developers --as-group testers`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asSomebody := cmd.Flags().Changed("as")
			switch {
			case asSomebody && user == "":
				return &cmdutil.UsageError{Message: "--as needs a user name", Hints: []string{cmdutil.SeeHelp(cmd)}}
			case len(groups) > 0 && !asSomebody:
				return &cmdutil.UsageError{Message: "--as-group needs --as: a group alone is not an identity", Hints: []string{cmdutil.SeeHelp(cmd)}}
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
				return fmt.Errorf("creating a kubeconfig for cluster %q: %w", name, err)
			}
			_, err = a.Out.Write(kubeconfig)
			return err
		},
	}
	a.AddNameFlag(cmd, &name, a.DefaultName(), "name of the cluster")
	cmd.Flags().StringVar(&user, "as", "", "user, such as system:serviceaccount:NAMESPACE:NAME (default: the administrator)")
	// Not a StringSlice: that would split a group at a comma, and exactly this group was asked for.
	cmd.Flags().StringArrayVar(&groups, "as-group", nil, "group of that user; can be repeated")
	return cmd
}
