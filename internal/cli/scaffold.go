// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/scaffold"
)

// What init, create and delete have in common.

// scaffoldTemplate is the usage of verbs that name what they make: opdock create api.
const scaffoldTemplate = `Usage:
  {{.UseLine}}

Examples:
{{.Example}}
{{- if .HasAvailableSubCommands}}

What:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{- end}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}
{{- if .HasAvailableSubCommands}}

More about one of them: {{.CommandPath}} WHAT --help
{{- end}}
`

// newScaffoldVerb returns a verb that needs another word, such as create.
func newScaffoldVerb(verb *cobra.Command, what ...*cobra.Command) *cobra.Command {
	verb.SuggestionsMinimumDistance = 2
	verb.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hints := append(didYouMean(cmd.SuggestionsFor(args[0])), seeHelp(cmd))
		return &usageError{message: fmt.Sprintf("opdock cannot %s %q", cmd.Name(), args[0]), hints: hints}
	}
	verb.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	verb.SetUsageTemplate(scaffoldTemplate)
	for _, one := range what {
		one.DisableFlagsInUseLine = true
		one.Args = noArguments
		verb.AddCommand(one)
	}
	return verb
}

// scaffoldFlags are those of all verbs that change a project.
type scaffoldFlags struct {
	dir        string
	noGenerate bool
	quiet      bool
	format     outputFormat
}

func (a *App) addScaffoldFlags(cmd *cobra.Command, f *scaffoldFlags) {
	cmd.Flags().StringVar(&f.dir, "dir", ".", "the folder of the project")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only errors")
	a.addOutputFlag(cmd, &f.format)
}

// scaffolded is what programs read.
type scaffolded struct {
	*scaffold.Plan
	Generated []generate.Change `json:"generated"`
}

// carryOut writes a plan and generates. If anything fails or somebody interrupts, the project is as it was before.
func (a *App) carryOut(ctx context.Context, plan *scaffold.Plan, f scaffoldFlags, done string) error {
	began := a.Now()
	d := a.newDisplay(f.quiet || f.format == outputJSON)
	if err := ctx.Err(); err != nil {
		return interrupted(err)
	}
	made := scaffolded{Plan: plan, Generated: []generate.Change{}}
	var generating error
	err := plan.Write(ctx, func(ctx context.Context) error {
		if !plan.Generate || f.noGenerate {
			return nil
		}
		d.run("Generating")
		stop := d.animate()
		result, err := a.Generate(ctx, generate.Options{Dir: plan.Dir})
		stop()
		if err != nil && !errors.Is(err, generate.ErrNothing) {
			generating = err
		}
		if result != nil {
			made.Generated = result.Changes
		}
		return generating
	})
	switch {
	case errors.Is(err, filewrite.ErrNotTakenBack):
		return err
	case generating != nil:
		return explainTakenBack(generating)
	case err != nil:
		return fmt.Errorf("no file was changed: %w", err)
	}
	if f.format == outputJSON {
		return a.printJSON(made)
	}
	if f.quiet {
		return nil
	}
	a.printScaffolded(made)
	fmt.Fprintf(a.Err, "%s (%s)\n", done, short(a.Now().Sub(began)))
	return nil
}

// suggest says what to do next.
func (a *App) suggest(f scaffoldFlags, next string) { a.remark(f, "Next, "+next) }

// remark says something about what was done, to people.
func (a *App) remark(f scaffoldFlags, text string) {
	if !f.quiet && f.format != outputJSON {
		fmt.Fprintln(a.Err, text)
	}
}

// inProject is a command line that does something with the project and can be pasted into the user's shell.
func (a *App) inProject(f scaffoldFlags, verb string, rest ...string) string {
	words := append([]string{shellQuote(a.Program), verb}, rest...)
	if f.dir != "." {
		words = append(words, "--dir", shellQuote(f.dir))
	}
	return strings.Join(words, " ")
}

func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: no file was changed")
	}
	return err
}

func explainTakenBack(err error) error {
	var source *generate.Error
	switch {
	case errors.As(err, &source):
		return withHints(fmt.Errorf("no file was changed, because generating failed with %s:\n%w", problemCount(len(source.Problems)), err),
			"with --no-generate it is done without generating")
	case errors.Is(err, context.Canceled):
		return interrupted(err)
	default:
		return withHints(fmt.Errorf("no file was changed, because generating failed: %w", err), "with --no-generate it is done without generating")
	}
}

// printScaffolded lists all files that are different now, whether planned or generated.
func (a *App) printScaffolded(made scaffolded) {
	words := map[string]string{}
	for _, change := range made.Changes {
		words[change.Path] = string(change.Kind)
	}
	for _, change := range made.Generated {
		if words[change.Path] == "" {
			words[change.Path] = changeWord(change.Kind)
		}
	}
	type line struct{ path, word string }
	lines := make([]line, 0, len(words))
	for path, word := range words {
		lines = append(lines, line{path, word})
	}
	slices.SortFunc(lines, func(x, y line) int { return cmp.Compare(x.path, y.path) })
	for _, one := range lines {
		fmt.Fprintf(a.Err, "  %s %s\n", one.word, one.path)
	}
}

// explainScaffold turns what cannot be done as it was asked for into a usage error.
func explainScaffold(err error) error {
	var input *scaffold.InputError
	if errors.As(err, &input) {
		return &usageError{message: input.Message, hints: input.Hints}
	}
	return err
}
