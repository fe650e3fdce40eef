// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
)

func TestStatus(t *testing.T) {
	known := clusters(alive, dead, stopped)
	for name, test := range map[string]struct {
		clusters map[string]cluster.Status
		args     []string
		code     int
	}{
		"none":               {nil, []string{"status"}, exitOK},
		"none-json":          {nil, []string{"status", "-o", "json"}, exitOK},
		"all":                {known, []string{"status"}, exitOK},
		"all-json":           {known, []string{"status", "-o", "json"}, exitOK},
		"alive":              {known, []string{"status", "--name", "dock"}, exitOK},
		"alive-json":         {known, []string{"status", "--name", "dock", "--output=json"}, exitOK},
		"dead":               {known, []string{"status", "--name", "lost"}, exitError},
		"dead-json":          {known, []string{"status", "--name", "lost", "-o", "json"}, exitError},
		"stopped":            {known, []string{"status", "--name", "old", "-o", "text"}, exitError},
		"never-started":      {known, []string{"status", "--name", "who"}, exitError},
		"never-started-json": {known, []string{"status", "--name", "who", "-ojson"}, exitError},
	} {
		t.Run(name, func(t *testing.T) {
			code, screen := newConsole(&fakeDock{clusters: test.clusters}).run(t.Context(), test.args...)
			expectCode(t, code, test.code)
			golden(t, "status/"+name, screen)
		})
	}
}

func TestStatusShowsWhatCanBeRead(t *testing.T) {
	s := newConsole(nil)
	s.Dock.List = func() ([]cluster.Status, error) {
		return []cluster.Status{alive}, errors.New(`finding cluster "other": permission denied`)
	}
	code, screen := s.run(t.Context(), "status")
	expectCode(t, code, exitError)
	golden(t, "status/unreadable", screen)
}

func TestAgo(t *testing.T) {
	app := newConsole(nil).App
	for before, want := range map[time.Duration]string{
		-time.Second:         "0s ago", // a clock that was set back
		0:                    "0s ago",
		42 * time.Second:     "42s ago",
		90 * time.Second:     "1m ago",
		59 * time.Minute:     "59m ago",
		47 * time.Hour:       "47h ago",
		50 * time.Hour:       "2d ago",
		400 * 24 * time.Hour: "400d ago",
	} {
		if got := app.ago(noon.Add(-before)); got != want {
			t.Errorf("%v: got %q, want %q", before, got, want)
		}
	}
}
