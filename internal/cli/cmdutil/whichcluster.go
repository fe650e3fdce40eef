// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/opdock/opdock/cluster"
)

// WhichCluster is how flags say on which cluster a verb works: one of opdock's, which is started if it does not run, or
// one that opdock did not make.
type WhichCluster struct {
	Name       string
	Nodes      int
	Kubeconfig string
	Context    string
	Namespace  string
	Keep       bool
	Timeout    time.Duration
}

// Foreign says whether the cluster is not one of opdock's.
func (w *WhichCluster) Foreign() bool { return w.Kubeconfig != "" || w.Context != "" }

func (w *WhichCluster) Check(cmd *cobra.Command) error {
	var message string
	flags := cmd.Flags()
	switch {
	case flags.Changed("namespace") && len(validation.IsDNS1123Label(w.Namespace)) > 0:
		message = fmt.Sprintf("--namespace cannot be %q: a name is made of lower case letters, digits and dashes", w.Namespace)
	case w.Timeout <= 0:
		message = fmt.Sprintf("--timeout must be more than 0, not %s", w.Timeout)
	case flags.Changed("nodes") && w.Nodes < 1:
		message = fmt.Sprintf("--nodes must be at least 1, not %d", w.Nodes)
	}
	for _, flag := range []string{"name", "nodes", "keep"} {
		if w.Foreign() && flags.Changed(flag) {
			message = fmt.Sprintf("--%s is about a cluster of opdock's, and --kubeconfig and --context name another", flag)
		}
	}
	if message == "" {
		return nil
	}
	return &UsageError{Message: message, Hints: []string{SeeHelp(cmd)}}
}

// OpenCluster opens the cluster of opdock's that is meant, or starts it. What leave does depends on which it was.
func (a *App) OpenCluster(ctx context.Context, w WhichCluster) (c Running, leave func() error, err error) {
	status, err := a.Dock.Find(w.Name)
	if err != nil {
		return nil, nil, err
	}
	wasAlive := status.State == cluster.Alive
	if wasAlive {
		c, err = a.Dock.Open(w.Name)
	} else {
		c, err = a.StartFor(ctx, w, status)
	}
	return c, func() error { return a.leave(c, w, wasAlive) }, err
}

// StartFor starts the cluster for this run. It ends with this process, however that ends, unless it is to be kept.
func (a *App) StartFor(ctx context.Context, w WhichCluster, before cluster.Status) (Running, error) {
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

// leave leaves the cluster as it was found.
func (a *App) leave(c Running, w WhichCluster, wasAlive bool) error {
	status, err := a.Dock.Find(w.Name)
	switch {
	case err == nil && status.State != cluster.Alive:
		return nil // it has ended before us, and whoever waited for it has said so
	case wasAlive:
		fmt.Fprintf(a.Err, "Cluster %q was running before and still is; stop it: %s\n", w.Name, a.Command("down", w.Name))
		return nil
	case w.Keep:
		fmt.Fprintf(a.Err, "Cluster %q is left running; stop it: %s\n", w.Name, a.Command("down", w.Name))
		return nil
	}
	fmt.Fprintf(a.Err, "Stopping cluster %q\n", w.Name)
	if err := c.Stop(); err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "Cluster %q is stopped; its objects are kept. Remove them: %s\n", w.Name, a.Command("down", w.Name, "--delete"))
	return nil
}

// EndOf is nil while the cluster is alive.
func (a *App) EndOf(name string) error {
	status, err := a.Dock.Find(name)
	if err != nil || status.State == cluster.Alive {
		return err
	}
	return &cluster.NotRunningError{Status: status}
}
