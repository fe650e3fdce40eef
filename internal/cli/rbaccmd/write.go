// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/filewrite"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/rights"
)

// written is what programs read about --write.
type written struct {
	Report    *rights.Report    `json:"report"`
	Edits     []rights.Edit     `json:"edits"`
	Generated []generate.Change `json:"generated"`
}

// write edits the markers and generates the role. If anything fails, the project is as it was before.
func (a verbs) write(ctx context.Context, o rbacOptions, about *subject, report *rights.Report) error {
	dir := about.project.Dir
	if err := a.RecoverProject(ctx, dir); err != nil {
		return err
	}
	left := rights.NotesOn(about.others)
	if len(about.markers) == 0 {
		return noMarkers(rights.ErrNoMarkers, left...)
	}
	for _, note := range left {
		if !slices.Contains(report.Notes, note) {
			report.Notes = append(report.Notes, note)
		}
	}
	only := []string{"rbac"}
	_, generates := about.project.Generators()
	if generates {
		if err := a.upToDate(ctx, dir, only); err != nil {
			return err
		}
	}
	plan, err := rights.PlanEdits(dir, about.markers, report.Grants, rights.Elsewhere(about.roles.Rules, about.markers))
	switch {
	case errors.Is(err, rights.ErrNoMarkers):
		return noMarkers(err, left...)
	case errors.Is(err, rights.ErrOnlyNamespaced):
		return noMarkers(err, append(left, "add the marker yourself, and bind the ClusterRole that is generated from it to the service account of the operator")...)
	}
	if err != nil {
		return err
	}
	done := written{Report: report, Edits: plan.Edits, Generated: []generate.Change{}}
	if len(plan.Edits) > 0 {
		err = transact(ctx, dir, plan.Changes, func(ctx context.Context) error {
			if !generates {
				return nil
			}
			result, err := a.Generate(ctx, generate.Options{Dir: dir, Only: only})
			if err == nil {
				done.Generated = result.Changes
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("no file was changed: %w", err)
		}
	}
	if o.format == formatJSON {
		return a.PrintJSON(done)
	}
	a.printNotes(report)
	for _, edit := range plan.Edits {
		fmt.Fprintf(a.Out, "%s:%d\n", edit.File, edit.Line)
		if edit.Before != "" {
			fmt.Fprintf(a.Out, "  - %s\n", edit.Before)
		}
		for _, line := range edit.After {
			fmt.Fprintf(a.Out, "  + %s\n", line)
		}
	}
	for _, change := range done.Generated {
		fmt.Fprintf(a.Err, "  generated %s\n", change.Path)
	}
	switch {
	case len(plan.Edits) == 0:
		fmt.Fprintln(a.Err, "The markers already grant exactly the needed rights. No file was changed.")
	case generates:
		fmt.Fprintf(a.Err, "Changed the markers in %s.\n", cmdutil.Files(len(files(plan.Edits))))
	default:
		fmt.Fprintf(a.Err, "Changed the markers in %s. Generate the role with the tool of this project, such as make manifests.\n", cmdutil.Files(len(files(plan.Edits))))
	}
	return nil
}

func noMarkers(err error, left ...string) error {
	return hint.With(err, append(left, "print markers to add them yourself: opdock rbac -o markers", "or print roles: opdock rbac -o yaml")...)
}

// upToDate refuses to go on if the role is not what the markers ask for: what only the role grants would be lost.
func (a verbs) upToDate(ctx context.Context, dir string, only []string) error {
	result, err := a.Generate(ctx, generate.Options{Dir: dir, Only: only, Check: true})
	if errors.Is(err, generate.ErrNothing) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(result.Changes) > 0 {
		return hint.With(fmt.Errorf("%s does not match the markers", result.Changes[0].Path), "generate it first: opdock generate")
	}
	return nil
}

// transact changes files, and then does what belongs to it: all or nothing.
func transact(ctx context.Context, dir string, changes []filewrite.Change, then func(context.Context) error) error {
	transaction, err := filewrite.Begin(ctx, dir)
	if err != nil {
		return err
	}
	err = transaction.Apply(changes)
	if err == nil {
		err = then(transaction.Context(ctx))
	}
	if err == nil {
		return transaction.Commit()
	}
	return errors.Join(err, transaction.Rollback())
}
