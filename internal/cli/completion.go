// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/projectfile"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a completion script for bash, zsh, fish or PowerShell",
		Long: `Prints a script that makes the shell complete verbs, flags, the names of clusters and the kinds of a project.
Load it from the shell's start-up file.`,
		Example: `  source <(opdock completion bash)
  source <(opdock completion zsh)
  opdock completion fish | source
  opdock completion powershell | Out-String | Invoke-Expression`,
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
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			default:
				return root.GenFishCompletion(out, true)
			}
		},
	}
}

// completeKind completes the flags that name a kind from the project's PROJECT file. Each of them leaves out what does not
// fit the others, and does not help with names that are new.
func (a *App) completeKind(cmd *cobra.Command, n *apiName, dir *string) {
	offer := func(flag string, fits func(projectfile.Resource) bool, value func(projectfile.Resource) string) {
		a.complete(cmd, flag, func() []string {
			file, err := projectfile.Read(*dir)
			if err != nil {
				return nil // the verb will say why
			}
			var values []string
			for _, one := range file.Resources {
				if text := value(one); text != "" && fits(one) && !slices.Contains(values, text) {
					values = append(values, text)
				}
			}
			return values
		})
	}
	is := func(wanted, got string) bool { return wanted == "" || wanted == got }
	offer("group", func(one projectfile.Resource) bool { return is(n.version, one.Version) && is(n.kind, one.Kind) },
		func(one projectfile.Resource) string { return one.Group })
	offer("version", func(one projectfile.Resource) bool { return is(n.group, one.Group) && is(n.kind, one.Kind) },
		func(one projectfile.Resource) string { return one.Version })
	offer("kind", func(one projectfile.Resource) bool { return is(n.group, one.Group) && is(n.version, one.Version) },
		func(one projectfile.Resource) string { return one.Kind })
	offer("api-version", func(one projectfile.Resource) bool { return is(n.kind, one.Kind) }, func(one projectfile.Resource) string {
		return one.QualifiedGroup() + "/" + one.Version
	})
}

// completionPatience is how long somebody who presses Tab is kept waiting for a program that is asked.
const completionPatience = 3 * time.Second

// completeWhy offers the kinds whose reconciles are recorded.
func (a *App) completeWhy(o *whyOptions) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.Contains(typed, "/") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
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

// completeKubectl lets kubectl complete its own command line, against the cluster that is meant.
func (a *App) completeKubectl(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	call, err := splitKubectl(args, a.defaultName())
	if err != nil {
		return nil, nothing
	}
	binary, err := a.Dock.FindBinary()
	if err != nil {
		return nil, nothing // nobody who presses Tab wants a control plane to be built
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	asked := exec.CommandContext(ctx, binary)
	asked.Args = append(append([]string{"kubectl", cobra.ShellCompRequestCmd}, call.args...), typed)
	asked.Env = a.Env
	if c, err := a.Dock.Open(call.cluster); err == nil && !choosesCluster(call.args) {
		asked.Env = setVariable(a.Env, "KUBECONFIG", c.Kubeconfig())
	}
	answer, err := asked.Output()
	if err != nil {
		return nil, nothing
	}
	return readCompletions(string(answer))
}

// readCompletions reads what a program of cobra's answers: a line for each completion, and a last one with a number that
// says what the shell is to do with them.
func readCompletions(answer string) ([]cobra.Completion, cobra.ShellCompDirective) {
	lines := strings.Split(strings.TrimSpace(answer), "\n")
	last := len(lines) - 1
	text, isDirective := strings.CutPrefix(lines[last], ":")
	directive, err := strconv.Atoi(text)
	if !isDirective || err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}
