// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"slices"
	"time"

	"github.com/opdock/opdock/internal/tree"
)

// Row is how an object of the fleet is at the end.
type Row struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Ready     bool   `json:"ready"`
	Status    string `json:"status"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`

	// IsGoal is whether it had to become ready.
	IsGoal  bool      `json:"-"`
	Created time.Time `json:"-"`
}

// Why is the status with further details.
func (row Row) Why() string {
	return tree.Object{Status: row.Status, Reason: row.Reason, Message: row.Message}.Why()
}

// Table is how the fleet is at the end.
type Table []Row

// Ready reports whether all goals are ready.
func (t Table) Ready() bool {
	return !slices.ContainsFunc(t, func(row Row) bool { return row.IsGoal && !row.Ready })
}

// Outcome lists the fleet's objects, and goals that no longer exist. Without goals, all objects
// in the namespace must be ready.
func Outcome(goals []Goal, namespace string, s tree.Snapshot) Table {
	table := Table{}
	for _, o := range s.Fleet {
		row := Row{
			Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Ready: o.State == tree.Good,
			Status: o.Status, Reason: o.Reason, Message: o.Message, Created: o.Created,
		}
		if index := slices.IndexFunc(goals, func(g Goal) bool { return g.is(&o) }); index >= 0 {
			row.IsGoal = true
			// The cached object may be older than the applied one.
			row.Ready = row.Ready && o.Generation >= goals[index].Generation
		}
		table = append(table, row)
	}
	for _, g := range goals {
		if !slices.ContainsFunc(s.Fleet, func(o tree.Object) bool { return g.is(&o) }) {
			table = append(table, Row{Kind: g.Kind, Namespace: g.Namespace, Name: g.Name, Status: "Gone", Message: "the object no longer exists", IsGoal: true})
		}
	}
	if len(goals) == 0 {
		for i := range table {
			table[i].IsGoal = table[i].Namespace == namespace
		}
	}
	return table
}
