// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package whycmd

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
)

// completeWhy offers the kinds whose reconciles are recorded.
func (a verbs) completeWhy(o *whyOptions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.Contains(typed, "/") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), cmdutil.CompletionPatience)
		defer cancel()
		var kinds []string
		if endpoint, err := a.findEndpoint(*o, cmd.Flags().Changed("name")); err == nil {
			if summary, err := endpoint.summary(ctx); err == nil {
				for _, controller := range summary.Controllers {
					if kind := strings.ToLower(controller.Kind); kind != "" && !slices.Contains(kinds, kind) {
						kinds = append(kinds, kind)
					}
				}
			}
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp
	}
}
