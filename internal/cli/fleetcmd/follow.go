// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/tree"
)

// calmInterval is the least time between two looks at what has changed.
const calmInterval = 100 * time.Millisecond

// follow shows what happens until there is a reason to end, and prints how things are then.
func (r *fleetRun) follow(ctx context.Context, fleet *runningFleet, began time.Time) error {
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	if r.untilReady {
		var cancel context.CancelFunc
		watching, cancel = context.WithTimeoutCause(watching, r.Timeout, cmdutil.ErrTimeout)
		defer cancel()
	}
	show := r.newShow(began)
	end := sync.OnceFunc(show.end)
	defer end() // a panic must not leave the terminal as it is
	err := r.await(watching, fleet, show)
	end()
	snapshot := r.model.Snapshot()
	final := r.outcome(snapshot)
	if printErr := r.printFinal(final); printErr != nil {
		return errors.Join(err, printErr)
	}
	switch {
	case errors.Is(err, cmdutil.ErrTimeout):
		return r.notReady(final)
	case errors.Is(err, cmdutil.ErrQuit) && !r.untilReady:
		return nil // what else could end it
	default:
		return err
	}
}

// await returns nil when everything is ready.
func (r *fleetRun) await(ctx context.Context, fleet *runningFleet, show show) error {
	changed, calm := r.model.Changed(), (<-chan time.Time)(nil)
	for {
		snapshot := r.model.Snapshot()
		show.update(snapshot)
		if r.untilReady && r.outcome(snapshot).ready() {
			return nil
		}
		select {
		case <-changed:
			// A rollout changes a lot within moments, and nobody could read it all.
			changed, calm = nil, time.After(calmInterval)
		case <-calm:
			changed, calm = r.model.Changed(), nil
		case <-show.wake():
		case input := <-show.typed():
			if show.press(input) {
				return cmdutil.ErrQuit
			}
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), cmdutil.ErrTimeout) {
				return cmdutil.ErrTimeout
			}
			return cmdutil.ErrQuit
		case <-fleet.ended:
			return hint.With(fmt.Errorf("the fleet has ended: %w", fleet.err), "its log: "+r.logPath)
		case <-r.target.Done():
			return r.target.Ended()
		}
	}
}

// finalRow is one line of the table at the end.
type finalRow struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`
	Status    string `json:"status"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`

	isGoal  bool
	created time.Time
}

type finalTable []finalRow

// outcome lists the fleet's objects, those that were to become ready first.
func (r *fleetRun) outcome(s tree.Snapshot) finalTable {
	table := finalTable{}
	for _, o := range s.Fleet {
		row := finalRow{
			Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Ready: o.State == tree.Good,
			Status: o.Status, Reason: o.Reason, Message: o.Message, created: o.Created,
		}
		index := slices.IndexFunc(r.goals, func(g goal) bool {
			return g.group == o.Group && g.kind == o.Kind && g.namespace == o.Namespace && g.name == o.Name
		})
		if index >= 0 {
			row.isGoal = true
			// What is known may be older than what was applied.
			row.Ready = row.Ready && o.Generation >= r.goals[index].generation
		}
		table = append(table, row)
	}
	for _, g := range r.goals {
		if !slices.ContainsFunc(s.Fleet, func(o tree.Object) bool {
			return g.group == o.Group && g.kind == o.Kind && g.namespace == o.Namespace && g.name == o.Name
		}) {
			table = append(table, finalRow{Kind: g.kind, Namespace: g.namespace, Name: g.name, Status: "Gone", Message: "it does not exist any more", isGoal: true})
		}
	}
	if len(r.goals) == 0 {
		// Without samples, all there is has to be ready.
		for i := range table {
			table[i].isGoal = table[i].Namespace == r.target.Namespace
		}
	}
	return table
}

func (t finalTable) ready() bool {
	return !slices.ContainsFunc(t, func(row finalRow) bool { return row.isGoal && !row.Ready })
}

func (r *fleetRun) printFinal(table finalTable) error {
	if r.format == cmdutil.OutputJSON {
		return r.PrintJSON(table)
	}
	if len(table) == 0 {
		fmt.Fprintf(r.Err, "There are no objects of the fleet in namespace %s.\n", r.target.Namespace)
		return nil
	}
	fmt.Fprintln(r.Err)
	severalNamespaces := slices.ContainsFunc(table, func(row finalRow) bool { return row.Namespace != table[0].Namespace })
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
		if !row.created.IsZero() {
			age = tree.Age(r.Now().Sub(row.created))
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", row.Kind, row.Name, ready, row.Status, age)
	}
	return out.Flush()
}

// notReady is the error of a run that has waited in vain.
func (r *fleetRun) notReady(table finalTable) error {
	var names, reasons []string
	for _, row := range table {
		if !row.isGoal || row.Ready {
			continue
		}
		names = append(names, row.Name)
		reasons = append(reasons, row.Kind+" "+row.Name+": "+row.why())
	}
	return hint.With(fmt.Errorf("not ready after %s: %s", r.Timeout, strings.Join(names, ", ")),
		append(reasons, "the fleet's log: "+r.logPath)...)
}

// why is the status with what else is known.
func (row finalRow) why() string {
	return tree.Object{Status: row.Status, Reason: row.Reason, Message: row.Message}.Why()
}
