// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

// NewBuildControlPlane is hidden because a user never needs it: up, kubectl and assets build what is missing. The
// Makefile uses it, so that a developer sees the same progress.
func NewBuildControlPlane(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var (
		output string
		quiet  bool
	)
	cmd := &cobra.Command{
		Use:    "build-controlplane --output FILE",
		Hidden: true,
		Short:  "Build the control plane binary",
		Long: `Builds the opdock-controlplane binary from source and shows the progress. The first build compiles
several thousand packages and takes minutes. Later builds take seconds.`,
		Example: "  opdock build-controlplane --output bin/opdock-controlplane",
		Args:    cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output == "" {
				return &cmdutil.UsageError{Message: "build-controlplane needs --output FILE", Hints: []string{cmdutil.SeeHelp(cmd)}}
			}
			return a.ShowBuild(cmd.Context(), quiet, func(progress func(cluster.BuildProgress)) error {
				return a.Dock.BuildBinary(cmd.Context(), output, progress)
			})
		},
	}
	cmd.Flags().StringVar(&output, "output", "", "file to write")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show progress")
	return cmd
}
