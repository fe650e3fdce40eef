// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"

	"github.com/opdock/opdock/internal/filewrite"
)

// ChangeKind is the kind of a change to a file.
type ChangeKind string

// The kinds of changes.
const (
	Create ChangeKind = "created"
	Edit   ChangeKind = "changed"
	Remove ChangeKind = "removed"
)

// Change is a file that is different after a plan was written.
type Change struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
}

// Plan is a set of changes to a project.
type Plan struct {
	// Dir is the folder of the project.
	Dir string `json:"dir"`
	// Changes are sorted by path.
	Changes []Change `json:"changes"`
	// Remaining are edited files that would otherwise be removed. They stay.
	Remaining []string `json:"remaining,omitempty"`
	// Generate reports whether there is something to generate after the plan was written.
	Generate bool `json:"-"`

	changes []filewrite.Change
}

func newPlan(t *tree) *Plan {
	plan := &Plan{Dir: t.dir, Changes: []Change{}, changes: t.changes()}
	for _, one := range plan.changes {
		kind := Edit
		switch {
		case one.Remove:
			kind = Remove
		case one.Before == nil:
			kind = Create
		}
		plan.Changes = append(plan.Changes, Change{Path: one.Path, Kind: kind})
	}
	return plan
}

// Write writes the plan and then calls then, for example to generate: all or nothing, even if the process is killed.
// Files that are written with the context of then belong to the same transaction. then may be nil.
func (p *Plan) Write(ctx context.Context, then func(context.Context) error) error {
	transaction, err := filewrite.Begin(ctx, p.Dir)
	if err != nil {
		return err
	}
	err = transaction.Apply(p.changes)
	if err == nil && then != nil {
		err = then(transaction.Context(ctx))
	}
	if err == nil {
		return transaction.Commit()
	}
	if left := transaction.Rollback(); left != nil {
		return errors.Join(err, left)
	}
	return err
}

// Content returns the planned content of a file, for tests and for showing a plan; nil if the plan does not change
// it.
func (p *Plan) Content(path string) []byte {
	for _, one := range p.changes {
		if one.Path == path {
			return one.Content
		}
	}
	return nil
}
