// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package devcmd

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/lensview"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/rights/granting"
	"github.com/opdock/opdock/internal/tree"
)

// serveDevPage serves the page about all custom resources of the cluster until the returned
// function is called. Changes come from watches, and reconciles from the session's operator or
// its lens. Findings are also printed on the terminal, with or without a page.
func (a verbs) serveDevPage(ctx context.Context, o devOptions, t *devTarget, show *devShow, session *dev.Session) (end func(), err error) {
	relay := page.NewRelay()
	relay.Inferring = o.lens
	session.Observer = relay
	ctx, cancel := context.WithCancel(ctx)
	reporter := findings.Reporter{Tracker: relay.Findings(), Say: func(sentence string) { show.Say("! " + sentence) }}
	var parts sync.WaitGroup
	parts.Go(func() { reporter.Run(ctx) })
	stop := func() {
		cancel()
		parts.Wait()
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	if !o.page.Serve {
		return stop, nil
	}
	model, changes := tree.NewModel(), page.NewChanges()
	options := page.Options{
		Title: t.Title, Tree: model, Changes: changes, Operator: relay, Address: o.page.Address,
		StateDir: session.StateDir, Project: session.Project.Dir,
	}
	if o.lens {
		view := a.lensView(session)
		options.Traffic, options.Rights = view.Traffic, view.Rights
		session.Lensed = func(stream *lens.Stream) { parts.Go(func() { view.Follow(ctx, stream) }) }
	}
	if !o.Foreign() {
		status, err := a.Dock.Find(o.Name)
		if err != nil {
			return nil, err
		}
		options.StateDir = status.Dir // where opdock why --name finds it
	}
	running, err := page.Start(options)
	if err != nil {
		return nil, hint.With(err, "choose another address with --page-address, or do without: --page=false")
	}
	show.Say("Live view: " + running.URL())
	discovery := tree.Discovery{Model: model, Changed: changes.Observe, Problem: func(err error) { show.Say("the page: " + err.Error()) }}
	parts.Go(func() {
		if err := discovery.Run(ctx, t.cluster.Config); err != nil && ctx.Err() == nil {
			discovery.Problem(err)
		}
	})
	return func() {
		stop()
		_ = running.Close() // a failed cleanup is not an error
	}, nil
}

// lensView shows the session's lens. Granted rights are read from the project's files on each
// view, because the user edits them. Recordings of earlier sessions are included.
func (a verbs) lensView(session *dev.Session) *lensview.View {
	view := lensview.New(lens.Header{Project: session.Project.Name})
	view.Earlier, _ = filepath.Glob(filepath.Join(session.RecordingsDir(), "*.jsonl")) // the pattern is a good one
	dir := session.Project.Dir
	view.Grants = func(ctx context.Context) (*granting.Grants, error) {
		found, err := project.Find(dir) // the session's own is not for several at a time
		if err != nil {
			return nil, err
		}
		return granting.Read(ctx, found, granting.Auto)
	}
	return view
}
