// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"

	"github.com/spf13/cobra"
)

// What init, create and delete have in common.

// groupTemplate is the usage of verbs that name what they make: opdock create api.
const groupTemplate = `Usage:
  {{.UseLine}}

Examples:
{{.Example}}
{{- if .HasAvailableSubCommands}}

Available Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- if .HasAvailableSubCommands}}

Use "{{.CommandPath}} COMMAND --help" for more information about a command.
{{- end}}
`

// NewGroup returns a verb that needs another word, such as create.
func NewGroup(verb *cobra.Command, what ...*cobra.Command) *cobra.Command {
	verb.SuggestionsMinimumDistance = 2
	verb.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hints := append(didYouMean(cmd.SuggestionsFor(args[0])), SeeHelp(cmd))
		return &UsageError{Message: fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath()), Hints: hints}
	}
	verb.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	verb.SetUsageTemplate(groupTemplate)
	for _, one := range what {
		one.DisableFlagsInUseLine = true
		if one.Args == nil {
			one.Args = NoArguments
		}
		verb.AddCommand(one)
	}
	return verb
}
