// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/tree"
)

// serveDevPage serves the page about all custom resources of the cluster until the returned function is called. What the
// operator does is its own affair, so there are no reconciles to show, but there are the changes and who made them.
func (a *App) serveDevPage(ctx context.Context, o devOptions, t *devTarget, show *devShow) (end func(), err error) {
	if !o.page.serve {
		return func() {}, nil
	}
	model, changes := tree.NewModel(), page.NewChanges()
	options := page.Options{Title: t.title, Tree: model, Changes: changes, Address: o.page.address}
	if !o.foreign() {
		status, err := a.Dock.Find(o.name)
		if err != nil {
			return nil, err
		}
		options.StateDir = status.Dir
	}
	running, err := page.Start(options)
	if err != nil {
		return nil, withHints(err, "choose another address with --page-address, or do without: --page=false")
	}
	show.Say("what changes is shown at " + running.URL())
	discovery := page.Discovery{Tree: model, Changes: changes, Problem: func(err error) { show.Say("the page: " + err.Error()) }}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := discovery.Run(ctx, t.cluster.Config); err != nil && ctx.Err() == nil {
			discovery.Problem(err)
		}
	}()
	return func() {
		cancel()
		<-ended
		_ = running.Close() // what it could not tidy up is no reason to fail
	}, nil
}
