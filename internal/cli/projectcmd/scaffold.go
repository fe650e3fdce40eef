// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/scaffold"
)

// onlyChanged reports whether no flag other than these was set.
func onlyChanged(cmd *cobra.Command, names ...string) bool {
	only := true
	cmd.Flags().Visit(func(f *pflag.Flag) { only = only && slices.Contains(names, f.Name) })
	return only
}

// notBelow refuses to run in a subfolder of a project, and names its root.
func notBelow(dir string) error {
	start, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the project: %w", err)
	}
	for above := start; ; above = filepath.Dir(above) {
		if _, err := os.Stat(filepath.Join(above, "PROJECT")); err == nil {
			if above == start {
				return nil
			}
			return &cmdutil.UsageError{
				Message: start + " is not the directory of a project, but is inside one",
				Hints:   []string{"change to it: cd " + cmdutil.ShellQuote(above), "or select it: --dir " + cmdutil.ShellQuote(above)},
			}
		}
		if above == filepath.Dir(above) {
			return nil // verbs that need a project report that there is none
		}
	}
}

// scaffoldFlags are the flags of all verbs that change a project.
type scaffoldFlags struct {
	dir        string
	noGenerate bool
	quiet      bool
	format     cmdutil.OutputFormat
}

func (a verbs) addScaffoldFlags(cmd *cobra.Command, f *scaffoldFlags) {
	cmd.Flags().StringVar(&f.dir, "dir", ".", "directory of the project")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "print only errors")
	a.AddOutputFlag(cmd, &f.format)
}

// scaffolded is what programs read.
type scaffolded struct {
	*scaffold.Plan
	Generated []generate.Change `json:"generated"`
}

// carryOut writes a plan and generates. If anything fails or the user interrupts, the project is unchanged.
func (a verbs) carryOut(ctx context.Context, plan *scaffold.Plan, f scaffoldFlags, done string) error {
	began := a.Now()
	d := a.NewDisplay(f.quiet || f.format == cmdutil.OutputJSON)
	if err := ctx.Err(); err != nil {
		return cmdutil.Interrupted(err)
	}
	made := scaffolded{Plan: plan, Generated: []generate.Change{}}
	var generating error
	err := plan.Write(ctx, func(ctx context.Context) error {
		if !plan.Generate || f.noGenerate {
			return nil
		}
		d.Run("Generating")
		stop := d.Animate()
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
	if f.format == cmdutil.OutputJSON {
		return a.PrintJSON(made)
	}
	if f.quiet {
		return nil
	}
	a.printScaffolded(made)
	fmt.Fprintf(a.Err, "%s (%s)\n", done, cmdutil.Short(a.Now().Sub(began)))
	return nil
}

// suggest prints the next step.
func (a verbs) suggest(f scaffoldFlags, next string) { a.remark(f, "Next: "+next) }

// remark prints a message about what was done, for people.
func (a verbs) remark(f scaffoldFlags, text string) {
	if !f.quiet && f.format != cmdutil.OutputJSON {
		fmt.Fprintln(a.Err, text)
	}
}

// inProject is a command line that does something with the project and can be pasted into the user's shell.
func (a verbs) inProject(f scaffoldFlags, verb string, rest ...string) string {
	words := append([]string{cmdutil.ShellQuote(a.Program), verb}, rest...)
	if f.dir != "." {
		words = append(words, "--dir", cmdutil.ShellQuote(f.dir))
	}
	return strings.Join(words, " ")
}

func explainTakenBack(err error) error {
	var source *generate.Error
	switch {
	case errors.As(err, &source):
		return hint.With(fmt.Errorf("no file was changed because generating failed with %s:\n%w", problemCount(len(source.Problems)), err),
			"use --no-generate to skip generating")
	case errors.Is(err, context.Canceled):
		return cmdutil.Interrupted(err)
	default:
		return hint.With(fmt.Errorf("no file was changed because generating failed: %w", err), "use --no-generate to skip generating")
	}
}

// printScaffolded lists all files that are different now, whether planned or generated.
func (a verbs) printScaffolded(made scaffolded) {
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
		return &cmdutil.UsageError{Message: input.Message, Hints: input.Hints}
	}
	return err
}
