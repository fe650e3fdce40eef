// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownVerb is the argument check of the root command: an argument that reaches it is not the name of a verb.
func unknownVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hints := InOtherTools(root, args[0])
	if hints == nil {
		hints = didYouMean(root.SuggestionsFor(args[0]))
	}
	return &UsageError{Message: fmt.Sprintf("unknown command %q", args[0]), Hints: append(hints, SeeHelp(root))}
}

// wrongFlag explains an unknown flag or an invalid value.
func wrongFlag(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); !cmd.HasParent() && len(args) > 0 {
		return unknownVerb(cmd, args) // and therefore the flag is unknown as well
	}
	message := err.Error()
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag, value := invalid.GetFlag(), invalid.GetValue()
		message = fmt.Sprintf("--%s cannot be %q", flag.Name, value)
		switch flag.Value.Type() {
		case "int":
			message += ": not a number"
		case "duration":
			message += ": not a duration such as 90s or 2m"
		case "bool":
			message += ": must be true or false"
		default:
			message += ": " + errors.Unwrap(invalid).Error()
		}
	}
	hints := didYouMean(similarFlags(cmd, err))
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		hints = append(InOtherTools(cmd, unknown.GetSpecifiedName()), hints...)
	}
	return &UsageError{Message: message, Hints: append(hints, SeeHelp(cmd))}
}

// NoArguments is the argument check of commands that take only flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hints := InOtherTools(cmd, args[0])
	switch {
	case hints != nil:
	case cmd.Flags().Lookup("push") != nil:
		hints = []string{fmt.Sprintf("to set the image: %s --image %s", cmd.CommandPath(), ShellQuote(args[0]))}
	case cmd.Flags().Lookup("name") != nil:
		hints = []string{fmt.Sprintf("to select a cluster: %s --name %s", cmd.CommandPath(), ShellQuote(args[0]))}
	default:
		hints = []string{SeeHelp(cmd)}
	}
	return &UsageError{Message: fmt.Sprintf("%s takes no arguments, but got %q", cmd.Name(), args[0]), Hints: hints}
}

// SeeHelp returns a hint that points to the help of the command.
func SeeHelp(cmd *cobra.Command) string { return "see: " + cmd.CommandPath() + " --help" }
