// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/internal/testenv"
)

func TestDown(t *testing.T) {
	ephemeral, ephemeralDead := clitest.Alive, clitest.Dead
	ephemeral.Name, ephemeral.Dir, ephemeral.Ephemeral = "brief", "/state/brief", true
	ephemeralDead.Name, ephemeralDead.Dir, ephemeralDead.Ephemeral = "gone", "/state/gone", true
	known := clitest.Clusters(clitest.Alive, clitest.Dead, clitest.Stopped, ephemeral, ephemeralDead)
	half := clitest.Incomplete("/state/dock")
	known[half.Name] = half

	for name, test := range map[string]struct {
		args                            []string
		code                            int
		stopErr                         error
		stopped, markedStopped, deleted []string
	}{
		"alive":             {args: []string{"down"}, stopped: []string{"dock"}},
		"alive-delete":      {args: []string{"down", "--delete"}, stopped: []string{"dock"}, deleted: []string{"dock"}},
		"stopped":           {args: []string{"down", "--name", "old"}},
		"stopped-delete":    {args: []string{"down", "--name", "old", "--delete"}, deleted: []string{"old"}},
		"dead":              {args: []string{"down", "--name", "lost"}, code: 1, markedStopped: []string{"lost"}},
		"dead-delete":       {args: []string{"down", "--name", "lost", "--delete"}, deleted: []string{"lost"}},
		"unknown":           {args: []string{"down", "--name", "who"}, code: 1},
		"unknown-delete":    {args: []string{"down", "--name", "who", "--delete"}, code: 1},
		"incomplete":        {args: []string{"down", "--name", "half"}, code: 1},
		"incomplete-delete": {args: []string{"down", "--name", "half", "--delete"}, deleted: []string{"half"}},
		"ephemeral":         {args: []string{"down", "--name", "brief"}, stopped: []string{"brief"}},
		"ephemeral-delete":  {args: []string{"down", "--name", "brief", "--delete"}, stopped: []string{"brief"}},
		"ephemeral-dead":    {args: []string{"down", "--name", "gone"}, code: 1, deleted: []string{"gone"}},
		"quiet":             {args: []string{"down", "-q"}, stopped: []string{"dock"}},
		"dead-quiet":        {args: []string{"down", "--name", "lost", "-q"}, code: 1, markedStopped: []string{"lost"}},
		"all-delete-quiet": {
			args:    []string{"down", "--all", "--delete", "-q"},
			stopped: []string{"brief", "dock"}, deleted: []string{"dock", "gone", "half", "lost", "old"},
		},
		"stop-fails": {
			args: []string{"down", "--delete"}, code: 1, stopErr: errors.New("it does not listen"), stopped: []string{"dock"},
		},
		"all": {
			args: []string{"down", "--all"}, code: 1,
			stopped: []string{"brief", "dock"}, markedStopped: []string{"lost"}, deleted: []string{"gone"},
		},
		"all-delete": {
			args:    []string{"down", "--all", "--delete"},
			stopped: []string{"brief", "dock"}, deleted: []string{"dock", "gone", "half", "lost", "old"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{Clusters: known, StopErr: test.stopErr}
			code, screen := newConsole(dock).Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "down/"+name, screen)
			clitest.ExpectSame(t, "stopped", dock.Stopped, test.stopped)
			clitest.ExpectSame(t, "markedStopped", dock.MarkedStopped, test.markedStopped)
			clitest.ExpectSame(t, "deleted", dock.Deleted, test.deleted)
		})
	}
}

// TestDownDeletesALog covers a start that failed: there is no cluster, but its log is still there.
func TestDownDeletesALog(t *testing.T) {
	failed := cluster.Status{Name: "failed", Dir: t.TempDir(), State: cluster.NeverStarted}
	for _, args := range [][]string{{"--name", "failed", "--delete"}, {"--all", "--delete"}} {
		dock := &clitest.FakeDock{Clusters: clitest.Clusters(failed)}
		code, screen := newConsole(dock).Screen(t.Context(), append([]string{"down"}, args...)...)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		clitest.ExpectSame(t, "deleted", dock.Deleted, []string{"failed"})
		if !strings.Contains(screen, "Removed "+failed.Dir+": the log of a start that failed.") {
			t.Errorf("it says:\n%s", screen)
		}
	}
	dock := &clitest.FakeDock{Clusters: clitest.Clusters(failed)}
	code, _ := newConsole(dock).Screen(t.Context(), "down", "--all")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	clitest.ExpectSame(t, "deleted", dock.Deleted, nil)
}

func TestDownWithoutAnyCluster(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"none":     {[]string{"down"}, cmdutil.ExitError},
		"none-all": {[]string{"down", "--all"}, cmdutil.ExitOK},
	} {
		code, screen := newConsole(nil).Screen(t.Context(), test.args...)
		clitest.ExpectCode(t, code, test.code)
		golden.Compare(t, "down/"+name, screen)
	}
}

// slowCluster does not stop before the test ends.
type slowCluster struct {
	*clitest.FakeCluster
	stopping, released chan struct{}
}

func (c *slowCluster) Stop() error {
	close(c.stopping)
	<-c.released
	return nil
}

func TestDownInterrupted(t *testing.T) {
	other := clitest.Alive
	other.Name = "other"
	for name, args := range map[string][]string{"interrupted": {"down"}, "interrupted-all": {"down", "--all"}} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			c := &slowCluster{stopping: make(chan struct{}), released: make(chan struct{})}
			defer close(c.released)
			s := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive, other)})
			s.Dock.Open = func(string) (target.Running, error) { return c, nil }
			go func() {
				<-c.stopping
				interrupt()
			}()
			code, screen := s.Screen(ctx, args...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			golden.Compare(t, "down/"+name, screen)
		})
	}
}

func TestDownGoesOnWhenSomeClustersCannotBeRead(t *testing.T) {
	dock := &clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive)}
	s := newConsole(dock)
	s.Dock.List = func() ([]cluster.Status, error) {
		return []cluster.Status{clitest.Alive}, errors.New(`finding cluster "other": permission denied`)
	}
	code, screen := s.Screen(t.Context(), "down", "--all")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "down/unreadable", screen)
	clitest.ExpectSame(t, "stopped", dock.Stopped, []string{"dock"})
}

// What opdock dev has built for a cluster goes with it.
func TestDownRemovesTheFilesOfDev(t *testing.T) {
	home := t.TempDir()
	binary := filepath.Join(home, "dev", "old", "bin", "ship")
	testenv.WriteFile(t, binary, "")
	down := func(args ...string) string {
		s := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Stopped)})
		s.Dock.Home = func() string { return home }
		code, screen := s.Screen(t.Context(), append([]string{"down", "--name", "old"}, args...)...)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		return screen
	}
	down()
	if _, err := os.Stat(binary); err != nil {
		t.Errorf("the cluster is only stopped: %v", err)
	}
	if screen := down("--delete"); !strings.Contains(screen, "Removed "+filepath.Join(home, "dev", "old")+": the binary, the log, the recordings and the last campaign of the operator.") {
		t.Errorf("it says:\n%s", screen)
	}
	if _, err := os.Stat(filepath.Join(home, "dev", "old")); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}
