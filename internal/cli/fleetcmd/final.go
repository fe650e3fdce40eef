// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/run"
	"github.com/opdock/opdock/internal/tree"
)

// printFinal prints how the fleet is at the end.
func (r *fleetRun) printFinal(table run.Table) error {
	if r.format == cmdutil.OutputJSON {
		return r.PrintJSON(table)
	}
	if len(table) == 0 {
		fmt.Fprintf(r.Err, "No objects of the fleet found in namespace %s.\n", r.session.Target.Namespace)
		return nil
	}
	fmt.Fprintln(r.Err)
	severalNamespaces := slices.ContainsFunc(table, func(row run.Row) bool { return row.Namespace != table[0].Namespace })
	out := tabwriter.NewWriter(r.Out, 0, 0, 3, ' ', 0)
	head := "KIND\tNAME\tREADY\tSTATUS\tAGE"
	if severalNamespaces {
		head = "NAMESPACE\t" + head
	}
	fmt.Fprintln(out, head)
	for _, row := range table {
		if severalNamespaces {
			fmt.Fprintf(out, "%s\t", row.Namespace)
		}
		ready, age := "no", "-"
		if row.Ready {
			ready = "yes"
		}
		if !row.Created.IsZero() {
			age = tree.Age(r.Now().Sub(row.Created))
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", row.Kind, row.Name, ready, row.Status, age)
	}
	return out.Flush()
}

// notReady is the error if objects are not ready in time.
func (r *fleetRun) notReady(table run.Table) error {
	var names, reasons []string
	for _, row := range table {
		if !row.IsGoal || row.Ready {
			continue
		}
		names = append(names, row.Name)
		reasons = append(reasons, row.Kind+" "+row.Name+": "+row.Why())
	}
	return hint.With(fmt.Errorf("not ready after %s: %s", r.Timeout, strings.Join(names, ", ")),
		append(reasons, "log of the fleet: "+r.session.LogPath)...)
}
