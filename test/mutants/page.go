// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// introduction is the text before the table.
const introduction = `# Mutants of the fleet

Does [` + "`opdock prove`" + `](prove.md) find defects? ` + "`make mutants`" + ` breaks the five operators of this repository on
purpose, one defect at a time, and runs a short campaign on each: with the scenario of the kind, with the families that
the patch names, and with ` + "`--fail-fast`" + `. The patches are in [test/mutants](../test/mutants).

A mutant is killed if a finding was confirmed. Defects that show in undisturbed runs count, too. The time runs
from the start of the campaign, which begins with the build, to the run that first showed the finding. It depends on the
machine: several campaigns and other work shared two cores.

` + "`make mutants`" + ` writes this page; do not edit it.

`

// page returns docs/mutants.md.
func page(all []mutant, results map[string]result) string {
	var text strings.Builder
	text.WriteString(introduction)
	var times []time.Duration
	tried := 0
	for _, m := range all {
		if r, known := results[m.Name]; known {
			tried++
			if r.Verdict != "" {
				times = append(times, r.After)
			}
		}
	}
	fmt.Fprintf(&text, "**%d of %d mutants that were tried were killed**", len(times), tried)
	if len(times) > 0 {
		slices.Sort(times)
		fmt.Fprintf(&text, ", half of them within %s", seconds(times[len(times)/2]))
	}
	text.WriteString(".\n\n| mutant | what is broken | killed by | verdict | time | runs |\n|---|---|---|---|---|---|\n")
	for _, m := range all {
		r, known := results[m.Name]
		if !known {
			fmt.Fprintf(&text, "| `%s` | %s | not tried yet |  |  |  |\n", m.Name, m.Broken)
			continue
		}
		by, verdict, at := "**not killed** by "+strings.Join(m.Families, ", "), "", ""
		switch {
		case r.Failed != "":
			by = "**not judged**: " + strings.ReplaceAll(r.Failed, "|", "/")
		case r.Verdict != "":
			by, verdict, at = r.Family, "`"+r.Verdict+"`", seconds(r.After)
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s | %d |\n", m.Name, m.Broken, by, verdict, at, r.Runs)
	}
	return text.String()
}

func seconds(d time.Duration) string { return d.Round(time.Second).String() }
