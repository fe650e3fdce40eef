// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"context"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/tree"
)

// serveDevPage serves the page about all custom resources of the cluster until the returned function is called. Changes are
// seen by watching; the session's operator tells about its reconciles itself, if it uses package why.
func (a verbs) serveDevPage(ctx context.Context, o devOptions, t *devTarget, show *devShow, session *dev.Session) (end func(), err error) {
	if !o.page.Serve {
		return func() {}, nil
	}
	model, changes, relay := tree.NewModel(), page.NewChanges(), page.NewRelay()
	options := page.Options{
		Title: t.Title, Tree: model, Changes: changes, Operator: relay, Address: o.page.Address,
		StateDir: session.StateDir, Project: session.Project.Dir,
	}
	if !o.Foreign() {
		status, err := a.Dock.Find(o.Name)
		if err != nil {
			return nil, err
		}
		options.StateDir = status.Dir // where opdock why --name looks for it
	}
	running, err := page.Start(options)
	if err != nil {
		return nil, hint.With(err, "choose another address with --page-address, or do without: --page=false")
	}
	session.Observer = relay
	show.Say("what changes is shown at " + running.URL())
	discovery := tree.Discovery{Model: model, Changed: changes.Observe, Problem: func(err error) { show.Say("the page: " + err.Error()) }}
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
