// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"path/filepath"

	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/page"
)

// servePage serves the page until the returned function is called.
func (s *Session) servePage() (end func(), err error) {
	if !s.Page {
		return func() {}, nil
	}
	o := page.Options{Title: s.Target.Title, Tree: s.model, Changes: s.changes, Records: s.fleet.why.HTTPHandler(), Findings: s.Findings, Address: s.PageAddress}
	if s.Target.Ours {
		o.StateDir = filepath.Dir(s.LogPath) // where opdock why finds it
	}
	running, err := page.Start(o)
	if err != nil {
		if s.PageAddress != "" {
			return nil, hint.With(err, "choose another port with --page-address, or omit it to get a free port")
		}
		return nil, err
	}
	s.PageURL = running.URL()
	// A failed cleanup does not fail a successful run.
	return func() { _ = running.Close() }, nil
}
