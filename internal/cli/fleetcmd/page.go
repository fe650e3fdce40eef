// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"path/filepath"

	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/page"
)

// servePage serves the page until the returned function is called.
func (r *fleetRun) servePage(fleet *runningFleet) (end func(), err error) {
	if !r.page.Serve {
		return func() {}, nil
	}
	o := page.Options{Title: r.target.Title, Tree: r.model, Changes: r.changes, Records: fleet.why.HTTPHandler(), Address: r.page.Address}
	if r.target.Ours {
		o.StateDir = filepath.Dir(r.logPath) // where opdock why looks for it
	}
	running, err := page.Start(o)
	if err != nil {
		if r.page.Address != "" {
			return nil, hint.With(err, "choose another port with --page-address, or none and get a free one")
		}
		return nil, err
	}
	r.pageURL = running.URL()
	// What it could not tidy up is no reason for a run to fail that has gone well.
	return func() { _ = running.Close() }, nil
}
