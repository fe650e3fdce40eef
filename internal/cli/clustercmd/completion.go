// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/cmdutil"
)

// completeKubectl asks kubectl to complete its command line, on the selected cluster.
func (a verbs) completeKubectl(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	call, err := splitKubectl(args, a.DefaultName())
	if err != nil { // --name is the last word
		return a.ClusterNames(), nothing
	}
	binary, err := a.Dock.FindBinary()
	if err != nil {
		return nil, nothing // Tab must not start a build of the control plane
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), cmdutil.CompletionPatience)
	defer cancel()
	asked := exec.CommandContext(ctx, binary)
	asked.Args = append(append([]string{"kubectl", cobra.ShellCompRequestCmd}, call.args...), typed)
	asked.Env = a.Env
	if c, err := a.Dock.Open(call.cluster); err == nil && !choosesCluster(call.args) {
		asked.Env = withKubeconfig(a.Env, c.Kubeconfig())
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
