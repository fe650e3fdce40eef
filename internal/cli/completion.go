// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or PowerShell",
		Long: `Prints a script that completes commands, flags, cluster names and the kinds of a project.
Load it in the start-up file of your shell.`,
		Example: `  source <(opdock completion bash)
  source <(opdock completion zsh)
  opdock completion fish | source
  opdock completion powershell | Out-String | Invoke-Expression`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && slices.Contains(shells, args[0]) {
				return nil
			}
			return &cmdutil.UsageError{
				Message: fmt.Sprintf("%s takes the name of one shell: %s", cmd.Name(), strings.Join(shells, ", ")),
				Hints:   []string{cmdutil.SeeHelp(cmd)},
			}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			default:
				return root.GenFishCompletion(out, true)
			}
		},
	}
}
