// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
)

func TestStatus(t *testing.T) {
	known := clitest.Clusters(clitest.Alive, clitest.Dead, clitest.Stopped)
	gone := clitest.Dead
	gone.Name, gone.Ephemeral = "gone", true
	for name, test := range map[string]struct {
		clusters map[string]cluster.Status
		args     []string
		code     int
	}{
		"none":               {nil, []string{"status"}, cmdutil.ExitOK},
		"none-json":          {nil, []string{"status", "-o", "json"}, cmdutil.ExitOK},
		"all":                {known, []string{"status"}, cmdutil.ExitOK},
		"all-json":           {known, []string{"status", "-o", "json"}, cmdutil.ExitOK},
		"alive":              {known, []string{"status", "--name", "dock"}, cmdutil.ExitOK},
		"alive-json":         {known, []string{"status", "--name", "dock", "--output=json"}, cmdutil.ExitOK},
		"dead":               {known, []string{"status", "--name", "lost"}, cmdutil.ExitError},
		"dead-json":          {known, []string{"status", "--name", "lost", "-o", "json"}, cmdutil.ExitError},
		"stopped":            {known, []string{"status", "--name", "old", "-o", "text"}, cmdutil.ExitError},
		"dead-ephemeral":     {clitest.Clusters(gone), []string{"status", "--name", "gone"}, cmdutil.ExitError},
		"incomplete-fork":    {clitest.Clusters(clitest.Incomplete("/state/dock")), []string{"status", "--name", "half"}, cmdutil.ExitError},
		"incomplete-from":    {clitest.Clusters(clitest.Incomplete("/tmp/a.snapshot")), []string{"status", "--name", "half"}, cmdutil.ExitError},
		"incomplete-import":  {clitest.Clusters(clitest.Incomplete("/tmp/opdock-import-1/objects")), []string{"status", "--name", "half"}, cmdutil.ExitError},
		"never-started":      {known, []string{"status", "--name", "who"}, cmdutil.ExitError},
		"never-started-json": {known, []string{"status", "--name", "who", "-ojson"}, cmdutil.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			code, screen := newConsole(&clitest.FakeDock{Clusters: test.clusters}).Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "status/"+name, screen)
		})
	}
}

func TestStatusShowsWhatCanBeRead(t *testing.T) {
	s := newConsole(nil)
	s.Dock.List = func() ([]cluster.Status, error) {
		return []cluster.Status{clitest.Alive}, errors.New(`finding cluster "other": permission denied`)
	}
	code, screen := s.Screen(t.Context(), "status")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "status/unreadable", screen)
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
		if got := app.Ago(clitest.Noon.Add(-before)); got != want {
			t.Errorf("%v: got %q, want %q", before, got, want)
		}
	}
}

// What cannot be read is not the same as nothing.
func TestStatusOfWhatCannotBeRead(t *testing.T) {
	for _, arguments := range [][]string{{"status"}, {"status", "-o", "json"}} {
		s := newConsole(&clitest.FakeDock{})
		s.Dock.List = func() ([]cluster.Status, error) { return nil, errors.New("listing clusters: permission denied") }
		code, screen := s.Screen(t.Context(), arguments...)
		clitest.ExpectCode(t, code, cmdutil.ExitError)
		if strings.Contains(screen, "No clusters") || s.OutText.Len() > 0 || !strings.Contains(screen, "permission denied") {
			t.Errorf("it says:\n%s", screen)
		}
	}
}
