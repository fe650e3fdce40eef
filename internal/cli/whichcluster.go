// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/opdock/opdock/cluster"
)

// whichCluster is how flags say on which cluster a verb works: one of opdock's, which is started if it does not run, or
// one that opdock did not make.
type whichCluster struct {
	name       string
	nodes      int
	kubeconfig string
	context    string
	namespace  string
	keep       bool
	timeout    time.Duration
}

// foreign says whether the cluster is not one of opdock's.
func (w *whichCluster) foreign() bool { return w.kubeconfig != "" || w.context != "" }

func (w *whichCluster) check(cmd *cobra.Command) error {
	var message string
	flags := cmd.Flags()
	switch {
	case flags.Changed("namespace") && len(validation.IsDNS1123Label(w.namespace)) > 0:
		message = fmt.Sprintf("--namespace cannot be %q: a name is made of lower case letters, digits and dashes", w.namespace)
	case w.timeout <= 0:
		message = fmt.Sprintf("--timeout must be more than 0, not %s", w.timeout)
	case flags.Changed("nodes") && w.nodes < 1:
		message = fmt.Sprintf("--nodes must be at least 1, not %d", w.nodes)
	}
	for _, flag := range []string{"name", "nodes", "keep"} {
		if w.foreign() && flags.Changed(flag) {
			message = fmt.Sprintf("--%s is about a cluster of opdock's, and --kubeconfig and --context name another", flag)
		}
	}
	if message == "" {
		return nil
	}
	return &usageError{message: message, hints: []string{seeHelp(cmd)}}
}

// openCluster opens the cluster of opdock's that is meant, or starts it. What leave does depends on which it was.
func (a *App) openCluster(ctx context.Context, w whichCluster) (c Running, leave func() error, err error) {
	status, err := a.Dock.Find(w.name)
	if err != nil {
		return nil, nil, err
	}
	wasAlive := status.State == cluster.Alive
	if wasAlive {
		c, err = a.Dock.Open(w.name)
	} else {
		c, err = a.startFor(ctx, w, status)
	}
	return c, func() error { return a.leave(c, w, wasAlive) }, err
}

// startFor starts the cluster for this run. It ends with this process, however that ends, unless it is to be kept.
func (a *App) startFor(ctx context.Context, w whichCluster, before cluster.Status) (Running, error) {
	up := upOptions{timeout: w.timeout, foreground: !w.keep}
	up.Name, up.Nodes = w.name, w.nodes
	// What was ephemeral must not last because it died.
	up.Ephemeral = before.Ephemeral
	var err error
	if up.Binary, err = a.controlPlaneBinary(ctx, false); err != nil {
		return nil, err
	}
	c, err := a.start(ctx, up, fmt.Sprintf("Starting cluster %q", w.name))
	if err != nil {
		return nil, a.explainStart(ctx, up, before.Dir, err)
	}
	return c, nil
}

// leave leaves the cluster as it was found.
func (a *App) leave(c Running, w whichCluster, wasAlive bool) error {
	status, err := a.Dock.Find(w.name)
	switch {
	case err == nil && status.State != cluster.Alive:
		return nil // it has ended before us, and whoever waited for it has said so
	case wasAlive:
		fmt.Fprintf(a.Err, "Cluster %q was running before and still is; stop it: %s\n", w.name, a.command("down", w.name))
		return nil
	case w.keep:
		fmt.Fprintf(a.Err, "Cluster %q is left running; stop it: %s\n", w.name, a.command("down", w.name))
		return nil
	}
	fmt.Fprintf(a.Err, "Stopping cluster %q\n", w.name)
	if err := c.Stop(); err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "Cluster %q is stopped; its objects are kept. Remove them: %s\n", w.name, a.command("down", w.name, "--delete"))
	return nil
}

// endOf is nil while the cluster is alive.
func (a *App) endOf(name string) error {
	status, err := a.Dock.Find(name)
	if err != nil || status.State == cluster.Alive {
		return err
	}
	return &cluster.NotRunningError{Status: status}
}
