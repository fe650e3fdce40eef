// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"testing"

	"github.com/opdock/opdock/cluster"
)

func TestDown(t *testing.T) {
	ephemeral, ephemeralDead := alive, dead
	ephemeral.Name, ephemeral.Dir, ephemeral.Ephemeral = "brief", "/state/brief", true
	ephemeralDead.Name, ephemeralDead.Dir, ephemeralDead.Ephemeral = "gone", "/state/gone", true
	known := clusters(alive, dead, stopped, ephemeral, ephemeralDead)

	for name, test := range map[string]struct {
		args                            []string
		code                            int
		stopErr                         error
		stopped, markedStopped, deleted []string
	}{
		"alive":            {args: []string{"down"}, stopped: []string{"dock"}},
		"alive-delete":     {args: []string{"down", "--delete"}, stopped: []string{"dock"}, deleted: []string{"dock"}},
		"stopped":          {args: []string{"down", "--name", "old"}},
		"stopped-delete":   {args: []string{"down", "--name", "old", "--delete"}, deleted: []string{"old"}},
		"dead":             {args: []string{"down", "--name", "lost"}, code: 1, markedStopped: []string{"lost"}},
		"dead-delete":      {args: []string{"down", "--name", "lost", "--delete"}, deleted: []string{"lost"}},
		"unknown":          {args: []string{"down", "--name", "who"}, code: 1},
		"unknown-delete":   {args: []string{"down", "--name", "who", "--delete"}, code: 1},
		"ephemeral":        {args: []string{"down", "--name", "brief"}, stopped: []string{"brief"}},
		"ephemeral-delete": {args: []string{"down", "--name", "brief", "--delete"}, stopped: []string{"brief"}},
		"ephemeral-dead":   {args: []string{"down", "--name", "gone"}, code: 1, deleted: []string{"gone"}},
		"stop-fails": {
			args: []string{"down", "--delete"}, code: 1, stopErr: errors.New("it does not listen"), stopped: []string{"dock"},
		},
		"all": {
			args: []string{"down", "--all"}, code: 1,
			stopped: []string{"brief", "dock"}, markedStopped: []string{"lost"}, deleted: []string{"gone"},
		},
		"all-delete": {
			args:    []string{"down", "--all", "--delete"},
			stopped: []string{"brief", "dock"}, deleted: []string{"dock", "gone", "lost", "old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &fakeDock{clusters: known, stopErr: test.stopErr}
			code, screen := newConsole(dock).run(t.Context(), test.args...)
			expectCode(t, code, test.code)
			golden(t, "down/"+name, screen)
			expectSame(t, "stopped", dock.stopped, test.stopped)
			expectSame(t, "markedStopped", dock.markedStopped, test.markedStopped)
			expectSame(t, "deleted", dock.deleted, test.deleted)
		})
	}
}

func TestDownWithoutAnyCluster(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"none":     {[]string{"down"}, exitError},
		"none-all": {[]string{"down", "--all"}, exitOK},
	} {
		code, screen := newConsole(nil).run(t.Context(), test.args...)
		expectCode(t, code, test.code)
		golden(t, "down/"+name, screen)
	}
}

// slowCluster does not stop before the test ends.
type slowCluster struct {
	*fakeCluster
	stopping, released chan struct{}
}

func (c *slowCluster) Stop() error {
	close(c.stopping)
	<-c.released
	return nil
}

func TestDownInterrupted(t *testing.T) {
	other := alive
	other.Name = "other"
	for name, args := range map[string][]string{"interrupted": {"down"}, "interrupted-all": {"down", "--all"}} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			c := &slowCluster{stopping: make(chan struct{}), released: make(chan struct{})}
			defer close(c.released)
			s := newConsole(&fakeDock{clusters: clusters(alive, other)})
			s.Dock.Open = func(string) (Running, error) { return c, nil }
			go func() {
				<-c.stopping
				interrupt()
			}()
			code, screen := s.run(ctx, args...)
			expectCode(t, code, exitError)
			golden(t, "down/"+name, screen)
		})
	}
}

func TestDownGoesOnWhenSomeClustersCannotBeRead(t *testing.T) {
	dock := &fakeDock{clusters: clusters(alive)}
	s := newConsole(dock)
	s.Dock.List = func() ([]cluster.Status, error) {
		return []cluster.Status{alive}, errors.New(`finding cluster "other": permission denied`)
	}
	code, screen := s.run(t.Context(), "down", "--all")
	expectCode(t, code, exitError)
	golden(t, "down/unreadable", screen)
	expectSame(t, "stopped", dock.stopped, []string{"dock"})
}
