// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
)

func NewAssets(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	return &cobra.Command{
		Use:   "assets",
		Short: "Print a folder that envtest accepts as KUBEBUILDER_ASSETS",
		Long: `Prints the path of a folder with etcd, kube-apiserver and kubectl, which are all the control
plane binary called by another name. Test suites written for controller-runtime's envtest run on
it without a change and without a download. With OPDOCK_CONTROLLERS=1 in the environment they
also get controllers, scheduler, garbage collection and nodes.

Only the path is printed on standard output. If the binary has to be built first, its progress
goes to standard error.`,
		Example: `  KUBEBUILDER_ASSETS=$(opdock assets) go test ./...
  OPDOCK_CONTROLLERS=1 KUBEBUILDER_ASSETS=$(opdock assets) go test ./...`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binary, err := a.ControlPlaneBinary(cmd.Context(), false)
			if err != nil {
				return err
			}
			dir, err := a.Dock.Assets(binary)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, dir)
			return nil
		},
	}
}
