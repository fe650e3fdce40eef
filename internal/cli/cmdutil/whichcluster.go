// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/target"
)

// MaxNodes is how many nodes a cluster can have: what Kubernetes supports.
const MaxNodes = 5000

// CheckWhich validates the flags that select the cluster.
func CheckWhich(cmd *cobra.Command, w *target.Which) error {
	var message string
	flags := cmd.Flags()
	switch {
	case flags.Changed("namespace") && len(validation.IsDNS1123Label(w.Namespace)) > 0:
		message = fmt.Sprintf("--namespace cannot be %q: a name consists of lower case letters, digits and dashes", w.Namespace)
	case w.Timeout <= 0:
		message = fmt.Sprintf("--timeout must be more than 0, not %s", w.Timeout)
	case flags.Changed("nodes") && (w.Nodes < 1 || w.Nodes > MaxNodes):
		message = fmt.Sprintf("--nodes must be between 1 and %d, not %d", MaxNodes, w.Nodes)
	}
	for _, flag := range []string{"name", "nodes", "keep"} {
		if w.Foreign() && flags.Changed(flag) {
			message = fmt.Sprintf("--%s applies to a cluster of Opdock and cannot be used with --kubeconfig or --context", flag)
		}
	}
	if message == "" {
		return nil
	}
	return &UsageError{Message: message, Hints: []string{SeeHelp(cmd)}}
}

// Targets returns an opener for the selected cluster. It shows how the cluster starts and stops.
func (a *App) Targets() *target.Opener {
	return &target.Opener{Dock: a.Dock, Getenv: a.Getenv, Start: a.startFor, Leaving: a.tellLeaving}
}

// startFor starts the cluster for this run. It ends with this process, however that ends, unless it is to be kept or in use.
func (a *App) startFor(ctx context.Context, w target.Which, before cluster.Status) (target.Running, error) {
	up := StartOptions{Timeout: w.Timeout, Foreground: !w.Keep}
	up.Name, up.Nodes = w.Name, w.Nodes
	// What was ephemeral must not last because it died.
	up.Ephemeral = before.Ephemeral
	var err error
	if up.Binary, err = a.ControlPlaneBinary(ctx, false); err != nil {
		return nil, err
	}
	c, err := a.Start(ctx, up, fmt.Sprintf("Starting cluster %q", w.Name))
	if err != nil {
		return nil, a.ExplainStart(ctx, up, before.Dir, err)
	}
	return c, nil
}

// tellLeaving prints what happens to a cluster.
func (a *App) tellLeaving(what target.Leaving, name string) {
	switch what {
	case target.StillRunning:
		fmt.Fprintf(a.Err, "Cluster %q was already running and keeps running. Stop it: %s\n", name, a.Command("down", name))
	case target.Kept:
		fmt.Fprintf(a.Err, "Cluster %q keeps running. Stop it: %s\n", name, a.Command("down", name))
	case target.Shared:
		fmt.Fprintf(a.Err, "Cluster %q keeps running, because of opdock up or because another opdock uses it. Stop it: %s\n", name, a.Command("down", name))
	case target.Stopping:
		fmt.Fprintf(a.Err, "Stopping cluster %q\n", name)
	case target.Stopped:
		fmt.Fprintf(a.Err, "Cluster %q is stopped and its objects are kept. Remove them: %s\n", name, a.Command("down", name, "--delete"))
	}
}
