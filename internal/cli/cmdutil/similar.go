// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// didYouMean is a hint that names what a misspelt word could have been, or nothing.
func didYouMean(similar []string) []string {
	if len(similar) == 0 {
		return nil
	}
	return []string{"did you mean: " + strings.Join(similar, ", ")}
}

// similarFlags returns flags of the verb that are similar to the unknown flag in an error.
func similarFlags(cmd *cobra.Command, err error) []string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return nil
	}
	// Cobra knows how similar words are, but only says it about verbs.
	words := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden {
			words.AddCommand(&cobra.Command{Use: flag.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	given := unknown.GetSpecifiedName()
	similar := words.SuggestionsFor(given)
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		// --validation is a part of --programmatic-validation.
		if !flag.Hidden && slices.Contains(strings.Split(flag.Name, "-"), given) && !slices.Contains(similar, flag.Name) {
			similar = append(similar, flag.Name)
		}
	})
	for i, name := range similar {
		similar[i] = "--" + name
	}
	return similar
}
