// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tracecmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/lensview"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/rights/granting"
)

// serveRecording shows a recording on the page until the user interrupts it.
func (a verbs) serveRecording(ctx context.Context, o traceOptions) error {
	// What is granted is known for the project in this directory, which need not be the one that was recorded.
	found, err := project.Find(".")
	var missing *project.NotFoundError
	if err != nil && !errors.As(err, &missing) {
		return err
	}
	name := ""
	if found != nil {
		name = found.Name
	}
	options, recorded, err := lensview.Open(o.open, func(ctx context.Context) (*granting.Grants, error) { return granting.Read(ctx, found, granting.Auto) }, name)
	if err != nil {
		return err
	}
	switch {
	case found == nil:
		fmt.Fprintln(a.Err, "There is no project in this directory, so the page shows which rights were used, but not which are granted.")
	case recorded.Header.Project != name:
		fmt.Fprintf(a.Err, "The recording is not of project %s in this directory, so the page does not show which rights are granted.\n", name)
	}
	options.Address = o.pageAddress
	running, err := page.Start(options)
	if err != nil {
		return hint.With(err, "choose another address with --page-address")
	}
	defer running.Close()
	a.describe(recorded)
	fmt.Fprintf(a.Out, "\nPage: %s (press Ctrl-C to stop)\n", running.URL())
	<-ctx.Done()
	return nil
}
