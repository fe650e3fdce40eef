// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

var shells = []string{"bash", "zsh", "fish"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh or fish",
		Long: `Prints a script that makes the shell complete verbs, flags and the names of clusters. Load it
from the shell's start-up file.`,
		Example: `  source <(opdock completion bash)
  source <(opdock completion zsh)
  opdock completion fish | source`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(shells, args[0]) {
				return nil
			}
			return &usageError{
				message: fmt.Sprintf("%s takes the name of one shell: %s", cmd.Name(), strings.Join(shells, ", ")),
				hints:   []string{seeHelp(cmd)},
			}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			default:
				return root.GenFishCompletion(out, true)
			}
		},
	}
}
