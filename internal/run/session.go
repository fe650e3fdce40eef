// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run is what opdock run does: it installs the kinds of the fleet on a cluster, runs their controllers in this
// process, applies samples, and follows what becomes of them.
package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/why"
)

// calmInterval is the minimum time between two updates of the screen.
const calmInterval = 100 * time.Millisecond

var (
	// ErrQuit means that the user has had enough.
	ErrQuit = errors.New("interrupted")
	// ErrTimeout means that not everything was ready in time.
	ErrTimeout = errors.New("timeout")
)

// Options configures a session.
type Options struct {
	Target *target.Target
	// Home is the folder of what Opdock keeps.
	Home    string
	Samples []Sample
	// UntilReady ends a session when everything is ready, or after Timeout.
	UntilReady bool
	Timeout    time.Duration
	// Page serves the page, at PageAddress or else at a free port of loopback.
	Page        bool
	PageAddress string
	// Step does a part of the start, and shows that.
	Step func(doing, done string, work func() error) error
}

// Screen shows what becomes of the fleet.
type Screen interface {
	// Update shows how things are now.
	Update(tree.Snapshot)
	// Wake receives something when there is something to show although nothing has changed.
	Wake() <-chan time.Time
	// Typed receives key presses; nil if they are ignored.
	Typed() <-chan string
	// Press handles a key and returns whether to quit.
	Press(input string) (quit bool)
}

// Session is a fleet that runs.
type Session struct {
	Options
	// LogPath is where the controllers log.
	LogPath string
	// PageURL is where the page is; empty if there is none.
	PageURL string
	// Notes are messages for the user, for example about samples that were not applied.
	Notes []string
	// Findings tracks problems in the fleet.
	Findings *findings.Tracker

	fleet     *runningFleet
	model     *tree.Model
	changes   *page.Changes // the reconciles on the page
	goals     []Goal
	closePage func()
}

// Start returns when the samples are applied and all objects are watched. The caller must stop the session.
func Start(ctx context.Context, o Options) (_ *Session, err error) {
	s := &Session{
		Options: o, LogPath: logPath(o.Target, o.Home), model: tree.NewModel(), changes: page.NewChanges(), closePage: func() {},
		Findings: findings.NewTracker(),
	}
	err = s.Step("installing the CRDs", "CRDs installed: "+strings.Join(kindNames(), ", "), func() error {
		if err := s.Target.Reach(ctx); err != nil {
			return err
		}
		return s.installCRDs(ctx)
	})
	if err != nil {
		return nil, err
	}
	if s.fleet, err = startFleet(s.Target, s.LogPath); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	go func() {
		for record := range s.fleet.why.Follow(ctx, why.Query{}) {
			s.Findings.Add(record)
		}
	}()
	if s.closePage, err = s.servePage(); err != nil {
		s.closePage = func() {}
		return nil, err
	}
	err = s.Step("applying the samples", "samples applied in namespace "+s.Target.Namespace, func() (err error) {
		var notes []string
		s.goals, notes, err = applySamples(ctx, s.Target, s.Samples)
		s.Notes = append(s.Notes, notes...)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.Step("reading the objects", "watching", func() error { return watch(ctx, s.Target, s.model, s.changes) })
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Stop ends the page and the fleet.
func (s *Session) Stop() {
	s.closePage()
	s.fleet.stop()
}

// Outcome is how the fleet is now.
func (s *Session) Outcome() Table { return Outcome(s.goals, s.Target.Namespace, s.model.Snapshot()) }

// Follow shows what happens until there is a reason to end. It returns nil when everything is ready, ErrTimeout when that has
// taken too long, ErrQuit when the user has had enough, and otherwise why it cannot go on.
func (s *Session) Follow(ctx context.Context, screen Screen) error {
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	if s.UntilReady {
		var cancel context.CancelFunc
		watching, cancel = context.WithTimeoutCause(watching, s.Timeout, ErrTimeout)
		defer cancel()
	}
	changed, calm := s.model.Changed(), (<-chan time.Time)(nil)
	for {
		snapshot := s.model.Snapshot()
		screen.Update(snapshot)
		if s.UntilReady && Outcome(s.goals, s.Target.Namespace, snapshot).Ready() {
			return nil
		}
		select {
		case <-changed:
			// A rollout changes a lot within moments, too fast to read.
			changed, calm = nil, time.After(calmInterval)
		case <-calm:
			changed, calm = s.model.Changed(), nil
		case <-screen.Wake():
		case input := <-screen.Typed():
			if screen.Press(input) {
				return ErrQuit
			}
		case <-watching.Done():
			if errors.Is(context.Cause(watching), ErrTimeout) {
				return ErrTimeout
			}
			return ErrQuit
		case <-s.fleet.ended:
			return hint.With(fmt.Errorf("the fleet has stopped: %w", s.fleet.err), "log: "+s.LogPath)
		case <-s.Target.Done():
			return s.Target.Ended()
		}
	}
}

// installCRDs installs the CRDs of the fleet. On clusters other than Opdock's, they may belong to another version of
// the fleet that other users run.
func (s *Session) installCRDs(ctx context.Context) error {
	if s.Target.Ours {
		return controller.Install(ctx, s.Target.Config, controller.Kinds)
	}
	changed, err := controller.Upgrade(ctx, s.Target.Config, controller.Kinds)
	if newer := (*apply.DowngradeError)(nil); errors.As(err, &newer) {
		return hint.With(fmt.Errorf("%w; nothing was changed", err),
			"run the version of opdock that the CRD belongs to", "or run the fleet on another cluster: --name, --kubeconfig or --context")
	}
	if len(changed) > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("upgraded CRDs on %s: %s", s.Target.Title, strings.Join(changed, ", ")))
	}
	return err
}

func kindNames() []string {
	var names []string
	for _, kind := range controller.Kinds {
		names = append(names, kind.Kind)
	}
	return names
}
