// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
)

func (a *App) newStatus() *cobra.Command {
	var (
		name   string
		format outputFormat
	)
	cmd := &cobra.Command{
		Use:   "status [--name NAME] [-o FORMAT]",
		Short: "Tell which clusters are alive, dead, stopped or were never started",
		Long: `Without --name, lists all clusters. With --name, tells about that one, and the exit code
says whether it is alive: 0 if it is, 1 otherwise. Dead means that the process ended without
a clean stop; what was stored until then is still there and comes back with up.

With -o json a list is an array and a single cluster is an object. The state is one of Alive, Dead,
Stopped and NeverStarted.`,
		Example: `  opdock status
  opdock status --name dock
  opdock status --name dock -o json | jq -r .server`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("name") {
				return a.statusOfOne(name, format)
			}
			return a.statusOfAll(format)
		},
	}
	a.addNameFlag(cmd, &name, "", "only this cluster")
	a.addOutputFlag(cmd, &format)
	return cmd
}

func (a *App) statusOfAll(format outputFormat) error {
	// Clusters that cannot be read come as an error beside the others.
	all, unreadable := a.Dock.List()
	return errors.Join(a.printAll(all, format), unreadable)
}

func (a *App) printAll(all []cluster.Status, format outputFormat) error {
	if format == outputJSON {
		if all == nil {
			all = []cluster.Status{} // an empty list, not null
		}
		return a.printJSON(all)
	}
	if len(all) == 0 {
		fmt.Fprintf(a.Err, "There are no clusters. Start one: %s\n", a.command("up", a.defaultName()))
		return nil
	}
	table := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tPID\tSERVER\tVERSION\tSTARTED")
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, stateWord(s.State),
			orDash(number(s.PID)), orDash(s.Server), orDash(s.Version), orDash(a.ago(s.Started)))
	}
	return table.Flush()
}

func (a *App) statusOfOne(name string, format outputFormat) error {
	s, err := a.Dock.Find(name)
	if err != nil {
		return err
	}
	if format == outputJSON {
		err = a.printJSON(s)
	} else {
		err = a.printStatus(s)
	}
	if err == nil && s.State != cluster.Alive {
		return &saidError{"not alive"}
	}
	return err
}

func (a *App) printStatus(s cluster.Status) error {
	message, hints := fmt.Sprintf("cluster %q is alive", s.Name), []string(nil)
	if s.State != cluster.Alive {
		message, hints = a.explainNotRunning(s)
	}
	fmt.Fprintln(a.Out, message)
	if err := a.printFacts(s); err != nil {
		return err
	}
	for _, hint := range hints {
		fmt.Fprintf(a.Err, "  %s\n", hint)
	}
	return nil
}

// printFacts lists what is known about a cluster and leaves out what is not.
func (a *App) printFacts(s cluster.Status) error {
	if s.State == cluster.NeverStarted {
		return nil
	}
	kept := "kept"
	if s.Ephemeral {
		kept = "removed when it stops"
	}
	started, process := "", ""
	if s.State == cluster.Alive { // for a dead one, the line above has told it
		started, process = a.when(s.Started), number(s.PID)
	}
	table := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	for _, fact := range []struct{ name, value string }{
		{"server", s.Server},
		{"version", s.Version},
		{"last words", s.LastWords},
		{"started", started},
		{"pid", process},
		{"kubeconfig", s.Kubeconfig},
		{"state", fmt.Sprintf("%s (%s)", s.Dir, kept)},
	} {
		if fact.value != "" {
			fmt.Fprintf(table, "  %s\t%s\n", fact.name, fact.value)
		}
	}
	return table.Flush()
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
