// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

// NewStatus returns the verb status.
func NewStatus(app *cmdutil.App) *cobra.Command {
	a := verbs{app}
	var (
		name   string
		format cmdutil.OutputFormat
	)
	cmd := &cobra.Command{
		Use:   "status [--name NAME] [-o FORMAT]",
		Short: "Show which clusters are alive, dead or stopped",
		Long: `Lists all clusters. With --name, shows one cluster, and exits with code 0 if it is alive and with
code 1 otherwise. A cluster is dead if its process ended without a clean stop. Its objects are kept,
and "opdock up" starts it again.

With -o json, a list is printed as an array and a single cluster as an object. The state is one of
Alive, Dead, Stopped, Incomplete and NeverStarted. An incomplete cluster is one whose objects were never copied
completely from a snapshot, an import or the original of a fork.`,
		Example: `  opdock status
  opdock status --name dock
  opdock status --name dock -o json | jq -r .server`,
		Args: cmdutil.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("name") {
				return a.statusOfOne(name, format)
			}
			return a.statusOfAll(format)
		},
	}
	a.AddNameFlag(cmd, &name, "", "show only this cluster")
	a.AddOutputFlag(cmd, &format)
	return cmd
}

func (a verbs) statusOfAll(format cmdutil.OutputFormat) error {
	// Clusters that cannot be read come as an error beside the others.
	all, unreadable := a.Dock.List()
	if len(all) == 0 && unreadable != nil {
		return unreadable // which does not mean that there are none
	}
	return errors.Join(a.printAll(all, format), unreadable)
}

func (a verbs) printAll(all []cluster.Status, format cmdutil.OutputFormat) error {
	if format == cmdutil.OutputJSON {
		if all == nil {
			all = []cluster.Status{} // an empty list, not null
		}
		return a.PrintJSON(all)
	}
	if len(all) == 0 {
		fmt.Fprintf(a.Err, "No clusters found. Start one: %s\n", a.Command("up", a.DefaultName()))
		return nil
	}
	table := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATE\tPID\tSERVER\tVERSION\tSTARTED")
	for _, s := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, cmdutil.StateWord(s.State),
			cmdutil.OrDash(cmdutil.Number(s.PID)), cmdutil.OrDash(s.Server), versionOf(s.Version, s.Emulated), cmdutil.OrDash(a.Ago(s.Started)))
	}
	return table.Flush()
}

func (a verbs) statusOfOne(name string, format cmdutil.OutputFormat) error {
	s, err := a.Dock.Find(name)
	if err != nil {
		return err
	}
	if format == cmdutil.OutputJSON {
		err = a.PrintJSON(s)
	} else {
		err = a.printStatus(s)
	}
	if err == nil && s.State != cluster.Alive {
		return &cmdutil.SaidError{Reason: "not alive"}
	}
	return err
}

func (a verbs) printStatus(s cluster.Status) error {
	message, hints := fmt.Sprintf("cluster %q is alive", s.Name), []string(nil)
	if s.Stopping {
		message = fmt.Sprintf("cluster %q is alive, but stopping", s.Name)
	}
	if s.State != cluster.Alive {
		message, hints = a.ExplainNotRunning(s)
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

func versionFact(s cluster.Status) string {
	if s.Version == "" {
		return ""
	}
	return versionOf(s.Version, s.Emulated)
}

// printFacts lists what is known about a cluster and leaves out what is not.
func (a verbs) printFacts(s cluster.Status) error {
	if s.State == cluster.NeverStarted {
		return nil
	}
	kept := "kept"
	if s.Ephemeral {
		kept = "removed when it stops"
	}
	started, process := "", ""
	if s.State == cluster.Alive { // for a dead one, the line above has told it
		started, process = a.When(s.Started), cmdutil.Number(s.PID)
	}
	table := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	for _, fact := range []struct{ name, value string }{
		{"server", s.Server},
		{"version", versionFact(s)},
		{"last message", s.LastWords},
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
