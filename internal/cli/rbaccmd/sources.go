// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/internal/rights/granting"
)

// recordingsDir is where recordings are, below the state directories of sessions.
const recordingsDir = "recordings"

// recordings reads those that are named, or else the latest of the project, with notes on what is left out. One that cannot be
// read is an error only if it is named: another opdock may have made it, or a crash may have damaged it.
func (a verbs) recordings(ctx context.Context, about *subject, o rbacOptions, files []string) (all []*rights.Recording, notes []string, err error) {
	named := len(files) > 0
	if !named {
		if files, notes, err = a.recordingsOf(about, o.last); err != nil {
			return nil, nil, err
		}
	}
	var problems []string
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		recording, err := rights.CollectFile(file)
		var other *lens.NotARecordingError
		switch {
		case err != nil && !named:
			problems = append(problems, fmt.Sprintf("a recording is not counted because it cannot be read: %v; it is in %s", err, cmdutil.ShellQuote(file)))
			continue
		case errors.As(err, &other):
			return nil, nil, &cmdutil.UsageError{Message: err.Error(), Hints: []string{"make a recording: " + cmdutil.ShellQuote(a.Program) + " trace -- COMMAND"}}
		case err != nil:
			return nil, nil, err
		}
		all = append(all, recording)
	}
	if len(all) == 0 {
		return nil, nil, hint.With(fmt.Errorf("no recording of %s can be read", about.project.Name), append(problems,
			"run the operator and its samples, and record them: "+cmdutil.ShellQuote(a.Program)+" rbac --record")...)
	}
	return all, append(notes, problems...), nil
}

// foreign returns a note for each recording of another project. What its operator needs says nothing about this one.
func foreign(all []*rights.Recording, found *project.Project) (notes []string) {
	for _, one := range all {
		if of := one.Header.Project; found != nil && of != "" && of != found.Name {
			notes = append(notes, fmt.Sprintf("recording %s is of the project %s, not of %s", one.Name, of, found.Name))
		}
	}
	return notes
}

// recordingsOf finds the latest recordings of an operator, on whatever cluster they were made. The project may also have some of
// other programs that were traced there.
func (a verbs) recordingsOf(about *subject, last int) (files, notes []string, err error) {
	found, account := about.project, ""
	if about.identity != nil {
		account = about.identity.User()
	}
	paths, err := filepath.Glob(filepath.Join(a.DevStateDir("*"), recordingsDir, "*.jsonl"))
	if err != nil {
		return nil, nil, fmt.Errorf("looking for recordings: %w", err)
	}
	type one struct {
		path   string
		header lens.Header
	}
	var own, others []one
	for _, path := range paths {
		// Projects in two directories may have the same name.
		if owner := a.ProjectOf(filepath.Base(filepath.Dir(filepath.Dir(path)))); owner != "" && owner != found.Dir {
			continue
		}
		switch header, ok := lens.HeaderOf(path); {
		case !ok || header.Project != found.Name:
		case rights.OfOtherProgram(header, account) != "":
			others = append(others, one{path, header})
		default:
			own = append(own, one{path, header})
		}
	}
	slices.SortStableFunc(own, func(x, y one) int { return x.header.Began.Compare(y.header.Began) })
	slices.SortStableFunc(others, func(x, y one) int { return x.header.Began.Compare(y.header.Began) })
	own, others = own[max(0, len(own)-last):], others[max(0, len(others)-last):]
	for _, other := range others {
		if len(own) < last || other.header.Began.After(own[0].header.Began) { // otherwise it would be too old, too
			notes = append(notes, fmt.Sprintf("a recording is not counted because it is of %s, and not of the operator; to count it, name it: %s",
				rights.OfOtherProgram(other.header, account), cmdutil.ShellQuote(other.path)))
		}
	}
	if len(own) == 0 {
		return nil, nil, hint.With(fmt.Errorf("there are no recordings of %s", found.Name), append(notes,
			"run the operator and its samples, and record them: "+cmdutil.ShellQuote(a.Program)+" rbac --record",
			"or record the operator while you create, change and delete its samples: "+cmdutil.ShellQuote(a.Program)+" dev --samples",
			"or record any program: "+cmdutil.ShellQuote(a.Program)+" trace -- COMMAND")...)
	}
	for _, recording := range own {
		files = append(files, recording.path)
	}
	return files, notes, nil
}

// readSubject reads what a project grants.
func (a verbs) readSubject(ctx context.Context, found *project.Project, o rbacOptions) (*subject, error) {
	about := &subject{project: found, options: rights.Options{IncludeRefused: o.includeRefused}}
	if found == nil {
		return about, nil
	}
	read, err := granting.Read(ctx, found, o.against)
	if err != nil {
		return nil, err
	}
	about.identity, about.markers, about.others, about.granted, about.roles = read.Identity, read.Markers, read.Others, read.Granted, read.Roles
	about.options = read.Options
	about.options.IncludeRefused = o.includeRefused
	if about.granted.Source == "" && o.against != granting.Auto && o.against != granting.Nothing {
		return nil, hint.With(fmt.Errorf("the project %s has no rights to compare with: --against %s found none", found.Name, o.against), about.granted.Notes...)
	}
	return about, nil
}
