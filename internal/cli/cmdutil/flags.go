// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"time"

	"github.com/spf13/cobra"
)

// CompletionPatience is how long completion waits for a program that it asks.
const CompletionPatience = 3 * time.Second

// AddNameFlag adds the flag that selects the cluster.
func (a *App) AddNameFlag(cmd *cobra.Command, name *string, byDefault, usage string) {
	cmd.Flags().StringVar(name, "name", byDefault, usage)
	a.Complete(cmd, "name", a.ClusterNames)
}

// ClusterNames returns the names of all clusters, for completion.
func (a *App) ClusterNames() []string {
	all, _ := a.Dock.List() // what can be read is completed
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// Complete gives a flag shell completion.
func (a *App) Complete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag,
		func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this program, found by any test that runs it
	}
}
