// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
)

// generatePaths is the argument check of generate, which takes folders.
func generatePaths(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		hints := cmdutil.InOtherTools(cmd, arg)
		if hints == nil {
			continue
		}
		if _, err := os.Stat(arg); err != nil {
			return &cmdutil.UsageError{Message: fmt.Sprintf("directory %q does not exist", arg), Hints: append(hints, cmdutil.SeeHelp(cmd))}
		}
	}
	return nil
}

// NewGenerate returns the verb generate.
func NewGenerate(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var (
		options generate.Options
		quiet   bool
		format  cmdutil.OutputFormat
	)
	cmd := &cobra.Command{
		Use:   "generate [PATH]... [FLAG]...",
		Short: "Generate code and manifests from the Go types of an API",
		Long: `Does the work of controller-gen and of the generators of k8s.io/code-generator in one process, with the
same output. Markers select what is generated for a package:

  +kubebuilder:object..., +k8s:deepcopy-gen   deep copies, in the package
  other +kubebuilder markers and +groupName   CRDs, in config/crd/bases
  +kubebuilder:rbac                           a role, in config/rbac
  +kubebuilder:webhook                        webhook manifests, in config/webhook
  +genclient                                  clientset, listers, informers and apply configurations, in client,
                                              or in pkg/client if the types are in pkg
  +k8s:defaulter-gen                          defaulters, in the package
  +groupName without registration code        registration, in the package
  +k8s:openapi-gen                            OpenAPI definitions, in openapi in the client directory

The generators are ` + strings.Join(generate.Generators[:6], ", ") + `,
` + strings.Join(generate.Generators[6:], ", ") + `.

PATH is a directory of the module. Add /... to include all directories below it. The default is the whole
module. Go files start with the text of hack/boilerplate.go.txt, if it exists. An opdock.yaml next to
go.mod can change all of these settings.

If there is an error, no file is written. Files that are no longer generated are removed. If nothing has
changed since the last run, no packages are loaded.`,
		Example: `  opdock generate
  opdock generate --check                  # for CI: lists stale files and exits with code 1
  opdock generate ./api/... --only deepcopy,crd
  opdock generate --dir ../other-operator -o json`,
		Args: generatePaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			options.Paths = args
			for _, name := range options.Only {
				if !slices.Contains(generate.Generators, name) {
					return &cmdutil.UsageError{Message: fmt.Sprintf("--only %s is not known: use %s", name, strings.Join(generate.Generators, ", ")), Hints: []string{cmdutil.SeeHelp(cmd)}}
				}
			}
			return a.generate(cmd, options, format, quiet)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&options.Dir, "dir", ".", "directory of the Go module to generate for")
	flags.StringVar(&options.ConfigFile, "config", "", "configuration file to use instead of the module's opdock.yaml")
	flags.BoolVar(&options.Check, "check", false, "change nothing; list stale files and exit with code 1 if there are any")
	flags.BoolVar(&options.Force, "force", false, "generate even if nothing has changed since the last run")
	flags.StringSliceVar(&options.Only, "only", nil, "run only these generators, separated by commas")
	flags.StringVar(&options.HeaderFile, "header-file", "", "file with the header of Go files")
	flags.StringVar(&options.CRDDir, "crd-dir", "", "directory for CRDs")
	flags.StringVar(&options.RBACDir, "rbac-dir", "", "directory for the role")
	flags.StringVar(&options.WebhookDir, "webhook-dir", "", "directory for webhook manifests")
	flags.StringVar(&options.ClientDir, "client-dir", "", "directory for clientset, listers, informers and apply configurations")
	flags.StringVar(&options.OpenAPIDir, "openapi-dir", "", "directory for OpenAPI definitions")
	flags.BoolVarP(&quiet, "quiet", "q", false, "print only errors and, with --check, stale files")
	a.AddOutputFlag(cmd, &format)
	a.Complete(cmd, "only", func() []string { return generate.Generators })
	return cmd
}

func (a verbs) generate(cmd *cobra.Command, options generate.Options, format cmdutil.OutputFormat, quiet bool) error {
	began := a.Now()
	if !options.Check {
		if err := a.RecoverProject(cmd.Context(), cmdutil.ModuleFolder(options.Dir)); err != nil {
			return err
		}
	}
	d := a.NewDisplay(quiet || format == cmdutil.OutputJSON)
	d.Run("Loading packages")
	stop := d.Animate()
	var lines []func()
	options.Progress = func(step generate.Step) {
		line := func() { d.Done(fmt.Sprintf("%s: %s", step.Generator, cmdutil.Files(step.Files)), step.Duration) }
		if !d.Live() {
			// Elsewhere than on a terminal, a run that changes nothing leaves one line.
			lines = append(lines, line)
			return
		}
		line()
		d.Run("Generating")
	}
	result, err := a.Generate(cmd.Context(), options)
	stop()
	if err != nil {
		return a.explainGenerate(cmd, err, format)
	}
	if len(result.Changes) > 0 {
		for _, line := range lines {
			line()
		}
	}
	if format == cmdutil.OutputJSON {
		err = a.PrintJSON(result)
	} else {
		a.printChanges(result, options.Check, quiet)
		if !quiet {
			for _, warning := range result.Warnings {
				fmt.Fprintf(a.Err, "  warning: %s\n", warning)
			}
			fmt.Fprintf(a.Err, "%s (%s)\n", summary(result, options.Check), cmdutil.Short(a.Now().Sub(began)))
		}
	}
	if err == nil && options.Check && len(result.Changes) > 0 {
		return &cmdutil.SaidError{Reason: "stale"}
	}
	return err
}

// printChanges lists what differs, on standard output with --check, where it is the answer.
func (a verbs) printChanges(result *generate.Result, check, quiet bool) {
	for _, change := range result.Changes {
		switch {
		case check:
			fmt.Fprintf(a.Out, "%s: %s\n", change.Kind, change.Path)
		case !quiet:
			fmt.Fprintf(a.Err, "  %s %s\n", changeWord(change.Kind), change.Path)
		}
	}
}

func changeWord(kind generate.ChangeKind) string {
	switch kind {
	case generate.Missing:
		return "created"
	case generate.Leftover:
		return "removed"
	default:
		return "changed"
	}
}

func summary(result *generate.Result, check bool) string {
	switch {
	case result.Skipped:
		return fmt.Sprintf("Nothing has changed: %s up to date", cmdutil.Are(result.Files))
	case len(result.Changes) == 0:
		return fmt.Sprintf("Generated %s, none changed", cmdutil.Files(result.Files))
	case check:
		return fmt.Sprintf("Stale: %s. To update: opdock generate", cmdutil.Files(len(result.Changes)))
	default:
		return fmt.Sprintf("Generated %s, %d changed", cmdutil.Files(result.Files), len(result.Changes))
	}
}

func (a verbs) explainGenerate(cmd *cobra.Command, err error, format cmdutil.OutputFormat) error {
	var source *generate.Error
	switch {
	case errors.As(err, new(*generate.NoModuleError)):
		return a.NoProject(err)
	case errors.As(err, &source) && format == cmdutil.OutputJSON:
		return errors.Join(a.PrintJSON(source), &cmdutil.SaidError{Reason: "problems"})
	case errors.As(err, &source):
		err = fmt.Errorf("no file was changed because of %s:\n%w", problemCount(len(source.Problems)), err)
		if lacksModules(source) {
			// What go proposes is a command for each package that is missing.
			return hint.With(err, "to add the missing modules: go mod tidy")
		}
		return err
	case errors.As(err, new(*generate.UnfitClientError)):
		return hint.With(err, "to leave clients out: opdock generate --only deepcopy,crd,rbac,webhook, or generate.skip in opdock.yaml",
			"to generate them as before, use k8s.io/code-generator of the project's own version")
	case errors.Is(err, generate.ErrNothing):
		return hint.With(err, cmdutil.SeeHelp(cmd))
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted: no file was changed")
	default:
		return err
	}
}

// lacksModules reports whether go.mod or go.sum lack imported modules.
func lacksModules(err *generate.Error) bool {
	return slices.ContainsFunc(err.Problems, func(one generate.Problem) bool {
		return strings.Contains(one.Message, "missing go.sum entry") || strings.Contains(one.Message, "no required module provides package")
	})
}

func problemCount(n int) string {
	if n == 1 {
		return "a problem"
	}
	return fmt.Sprintf("%d problems", n)
}
