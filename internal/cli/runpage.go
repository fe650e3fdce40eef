// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/page"
)

// pageOptions are the flags of verbs that serve the page.
type pageOptions struct {
	serve   bool
	address string
}

func (o *pageOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.serve, "page", true, "serve a page on loopback that shows what leads to what")
	cmd.Flags().StringVar(&o.address, "page-address", "", "where to serve it, such as 127.0.0.1:8700 (default: a free port of loopback)")
}

func (o *pageOptions) check(cmd *cobra.Command) error {
	var message string
	switch {
	case o.address == "":
		return nil
	case !o.serve:
		message = "--page-address is about a page that --page=false leaves out"
	default:
		err := page.CheckAddress(o.address)
		if err == nil {
			return nil
		}
		message = "--page-address: " + err.Error()
	}
	return &usageError{message: message, hints: []string{seeHelp(cmd)}}
}

// servePage serves the page until the returned function is called.
func (r *fleetRun) servePage(fleet *runningFleet) (end func(), err error) {
	if !r.page.serve {
		return func() {}, nil
	}
	o := page.Options{Title: r.target.title, Tree: r.model, Changes: r.changes, Records: fleet.why.HTTPHandler(), Address: r.page.address}
	if r.target.ours {
		o.StateDir = filepath.Dir(r.target.logPath) // where opdock why looks for it
	}
	running, err := page.Start(o)
	if err != nil {
		if r.page.address != "" {
			return nil, withHints(err, "choose another port with --page-address, or none and get a free one")
		}
		return nil, err
	}
	r.pageURL = running.URL()
	// What it could not tidy up is no reason for a run to fail that has gone well.
	return func() { _ = running.Close() }, nil
}
