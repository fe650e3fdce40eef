// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/prove"
)

// writeScenario writes a scenario for the user to complete. It never overwrites a file, which may contain edits.
func (a verbs) writeScenario(ctx context.Context, o proveOptions) error {
	fail := func(err error) error { return errors.Join(err, &cmdutil.ExitCodeError{Code: couldNotRun}) }
	var notes []string
	found, err := a.FindProject(o.dir, &notes)
	if err != nil {
		return fail(err)
	}
	made, err := prove.Suggest(ctx, found.Dir)
	if err != nil {
		return fail(hint.With(err, "write a scenario by hand: see docs/prove.md"))
	}
	for _, missing := range made.Missing {
		fmt.Fprintf(a.Err, "Note: %v\n", missing)
	}
	if o.write == "-" {
		_, err = a.Out.Write(made.Text)
		return err
	}
	file, err := os.OpenFile(o.write, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a source file like others of the project
	if errors.Is(err, fs.ErrExist) {
		return fail(hint.With(fmt.Errorf("%s already exists and is not replaced", o.write), "choose another name, or print it: --write-scenario -"))
	}
	if err != nil {
		return fail(fmt.Errorf("writing a scenario: %w", err))
	}
	_, err = file.Write(made.Text)
	if err = errors.Join(err, file.Close()); err != nil {
		return fail(fmt.Errorf("writing a scenario: %w", err))
	}
	if made.FromSchemas {
		fmt.Fprintf(a.Out, "Wrote %s from the schemas of the CRDs. Its values are made up: check them.\n", o.write)
	} else {
		fmt.Fprintf(a.Out, "Wrote %s from the samples.\n", o.write)
	}
	fmt.Fprintf(a.Out, "Next: %s prove --scenario %s\n", cmdutil.ShellQuote(a.Program), cmdutil.ShellQuote(o.write))
	return nil
}
