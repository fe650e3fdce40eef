// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/target"
)

func snapshots(all ...cluster.Snapshot) map[string]cluster.Snapshot {
	byName := map[string]cluster.Snapshot{}
	for _, s := range all {
		s.Path = "/state/snapshots/" + s.Name + ".snapshot"
		byName[s.Name] = s
	}
	return byName
}

var (
	baseSnapshot = cluster.Snapshot{
		Name: "base", Cluster: "dock", Kubernetes: "v1.36.3", Revision: 4711, Objects: 120, Bytes: 3 << 20, Created: clitest.Noon.Add(-2 * time.Hour),
	}
	oldSnapshot = cluster.Snapshot{
		Name: "old", Kubernetes: "v1.36.3", Emulated: "1.34", Revision: 12, Objects: 1, Bytes: 42 << 20, Created: clitest.Noon.Add(-80 * time.Hour),
	}
)

func TestSnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		dock *clitest.FakeDock
	}{
		"save":             {args: []string{"snapshot", "save", "new"}},
		"save-quiet":       {args: []string{"snapshot", "save", "new", "-q"}},
		"save-not-running": {args: []string{"snapshot", "save", "new", "--name", "old"}, code: cmdutil.ExitError},
		"save-fails": {args: []string{"snapshot", "save", "new"}, code: cmdutil.ExitError, dock: &clitest.FakeDock{
			SaveErr: &cluster.StartError{Reason: cluster.ReasonDiskFull, Message: "the disk is full", Hint: "free some space"},
		}},
		"save-exists": {
			args: []string{"snapshot", "save", "base"}, code: cmdutil.ExitError, dock: &clitest.FakeDock{Saved: snapshots(baseSnapshot)},
		},
		"save-overwrite": {args: []string{"snapshot", "save", "base", "--overwrite"}, dock: &clitest.FakeDock{Saved: snapshots(baseSnapshot)}},
		"save-no-name":   {args: []string{"snapshot", "save"}, code: cmdutil.ExitUsage},
		"save-two-names": {args: []string{"snapshot", "save", "a", "b"}, code: cmdutil.ExitUsage},
		"list":           {args: []string{"snapshot", "list"}, dock: &clitest.FakeDock{Saved: snapshots(baseSnapshot, oldSnapshot)}},
		"list-none":      {args: []string{"snapshot", "list"}},
		"list-none-json": {args: []string{"snapshot", "list", "-o", "json"}},
		"list-json":      {args: []string{"snapshot", "list", "-o", "json"}, dock: &clitest.FakeDock{Saved: snapshots(baseSnapshot)}},
		"list-damaged": {args: []string{"snapshot", "list"}, code: cmdutil.ExitError, dock: &clitest.FakeDock{
			Saved: snapshots(baseSnapshot), Damaged: &cluster.SnapshotError{Path: "/state/snapshots/bad.snapshot", Reason: "it is not a snapshot of Opdock"},
		}},
		"delete":         {args: []string{"snapshot", "delete", "base"}, dock: &clitest.FakeDock{Saved: snapshots(baseSnapshot)}},
		"delete-missing": {args: []string{"snapshot", "delete", "base"}, code: cmdutil.ExitError},
		"unknown":        {args: []string{"snapshot", "rename"}, code: cmdutil.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			dock := test.dock
			if dock == nil {
				dock = &clitest.FakeDock{}
			}
			dock.Binary, dock.Clusters = "/bin/opdock-controlplane", clitest.Clusters(clitest.Alive, clitest.Stopped)
			code, screen := newConsole(dock).Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "snapshot/"+name, screen)
		})
	}
}

func TestSnapshotRestore(t *testing.T) {
	for name, test := range map[string]struct {
		args    []string
		code    int
		damaged error
		start   error
		stopped []string
		// notStarted is why the cluster does not start again.
		notStarted error
		// started is whether the cluster is started, and how.
		started, ephemeral bool
	}{
		"restore-running": {args: []string{"base"}, stopped: []string{"dock"}, started: true},
		"restore-stopped": {args: []string{"base", "--name", "old"}, started: true},
		"restore-new":     {args: []string{"base", "--name", "new"}, started: true},
		"restore-quiet":   {args: []string{"base", "--quiet"}, stopped: []string{"dock"}, started: true},
		"restore-missing": {args: []string{"none"}, code: cmdutil.ExitError},
		"restore-damaged": {
			args: []string{"base"}, code: cmdutil.ExitError,
			damaged: &cluster.SnapshotError{Path: "/state/snapshots/base.snapshot", Reason: "it is cut off or damaged"},
		},
		"restore-fails": {
			args: []string{"base"}, code: cmdutil.ExitError, stopped: []string{"dock"}, started: true,
			start: &cluster.StartError{Reason: cluster.ReasonDiskFull, Message: "the disk is full", Hint: "free some space"},
		},
		"restore-fails-twice": {
			args: []string{"base"}, code: cmdutil.ExitError, stopped: []string{"dock"}, started: true, notStarted: errors.New("the disk is full"),
			start: &cluster.StartError{Reason: cluster.ReasonDiskFull, Message: "the disk is full", Hint: "free some space"},
		},
		"restore-stopped-fails": {
			args: []string{"base", "--name", "old"}, code: cmdutil.ExitError, started: true,
			start: &cluster.StartError{Reason: cluster.ReasonDiskFull, Message: "the disk is full", Hint: "free some space"},
		},
		"restore-twice": {
			args: []string{"base", "--name", "old"}, code: cmdutil.ExitError, started: true,
			start: &cluster.StartError{Reason: cluster.ReasonRestoring, Message: "another process is restoring", Hint: "wait"},
		},
		"restore-timeout": {args: []string{"base", "--timeout", "0s"}, code: cmdutil.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{
				Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(clitest.Alive, clitest.Stopped),
				Saved: snapshots(baseSnapshot), Damaged: test.damaged, NotStarted: test.notStarted,
			}
			dock.Start = clitest.StartsWell(dock)
			if test.start != nil {
				dock.Start = clitest.FailsWith(test.start)
			}
			code, screen := newConsole(dock).Screen(t.Context(), append([]string{"snapshot", "restore"}, test.args...)...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "snapshot/"+name, screen)
			clitest.ExpectSame(t, "stopped", dock.Stopped, test.stopped)
			if (len(dock.Started) == 1) != test.started {
				t.Fatalf("started %+v", dock.Started)
			}
			if test.started {
				o := dock.Started[0]
				if o.From != "/state/snapshots/base.snapshot" || !o.Replace || !o.Detach || o.Ephemeral != test.ephemeral {
					t.Errorf("started with %+v", o)
				}
			}
		})
	}
}

func TestUpFromSnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"from":         {args: []string{"up", "--name", "new", "--from", "base"}},
		"from-missing": {args: []string{"up", "--name", "new", "--from", "none"}, code: cmdutil.ExitError},
		"from-state":   {args: []string{"up", "--name", "old", "--from", "base"}, code: cmdutil.ExitError},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(clitest.Stopped), Saved: snapshots(baseSnapshot)}
			dock.Start = clitest.StartsWell(dock)
			code, screen := newConsole(dock).Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "up/"+name, screen)
			if code == cmdutil.ExitOK && dock.Started[0].From != "/state/snapshots/base.snapshot" {
				t.Errorf("started with %+v", dock.Started[0])
			}
		})
	}
}

func TestFork(t *testing.T) {
	taken := clitest.Stopped
	taken.Name = "dock-fork-1"
	for name, test := range map[string]struct {
		args  []string
		code  int
		start error
		want  []string
	}{
		"fork":             {args: []string{"fork"}, want: []string{"dock-fork-2"}},
		"fork-named":       {args: []string{"fork", "copy", "--ephemeral"}, want: []string{"copy"}},
		"fork-quiet":       {args: []string{"fork", "copy", "--quiet"}, want: []string{"copy"}},
		"fork-taken":       {args: []string{"fork", "old"}, code: cmdutil.ExitError},
		"fork-not-running": {args: []string{"fork", "--name", "old"}, code: cmdutil.ExitError},
		"fork-dead":        {args: []string{"fork", "--name", "lost"}, code: cmdutil.ExitError},
		"fork-no-count":    {args: []string{"fork", "--count", "0"}, code: cmdutil.ExitUsage},
		"fork-many":        {args: []string{"fork", "--count", "1000"}, code: cmdutil.ExitUsage},
		"fork-bad-name":    {args: []string{"fork", "Bad_Name"}, code: cmdutil.ExitUsage},
		"fork-two-names":   {args: []string{"fork", "a", "b"}, code: cmdutil.ExitUsage},
		"fork-fails": {
			args: []string{"fork", "copy"}, code: cmdutil.ExitError, want: []string{"copy"},
			start: &cluster.StartError{Reason: cluster.ReasonNoSource, Message: "the cluster in /state/dock is not running", Hint: "start it first"},
		},
		"fork-fails-unexplained": {args: []string{"fork", "copy"}, code: cmdutil.ExitError, want: []string{"copy"}, start: errors.New("it ended")},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{
				Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(clitest.Alive, clitest.Stopped, clitest.Dead, taken),
			}
			dock.Start = clitest.StartsWell(dock)
			if test.start != nil {
				dock.Start = clitest.FailsWith(test.start)
			}
			code, screen := newConsole(dock).Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "fork/"+name, screen)
			var names []string
			for _, o := range dock.Forked {
				names = append(names, o.Name)
				if !o.Detach || o.Binary != "/bin/opdock-controlplane" {
					t.Errorf("forked with %+v", o)
				}
			}
			clitest.ExpectSame(t, "forks", names, test.want)
		})
	}
}

func TestForkNames(t *testing.T) {
	long := strings.Repeat("a", 31) + "-" + strings.Repeat("b", 8) // as long as a name can be
	all := []cluster.Status{{Name: "dock"}, {Name: "dock-fork-2"}, {Name: "try-1"}, {Name: "try-2", State: cluster.Incomplete}}
	for _, test := range []struct {
		source, chosen string
		count          int
		want           []string
	}{
		{"dock", "", 1, []string{"dock-fork-1"}},
		{"dock", "", 3, []string{"dock-fork-1", "dock-fork-3", "dock-fork-4"}},
		{"dock", "try", 1, []string{"try"}},
		{"dock", "try", 2, []string{"try-2", "try-3"}},
		{long, "", 1, []string{strings.Repeat("a", 31) + "-fork-1"}},
	} {
		names, err := newForkNames(test.source, test.chosen, test.count, all)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range test.count {
			got = append(got, names.next())
		}
		clitest.ExpectSame(t, test.chosen, got, test.want)
	}
	if _, err := newForkNames("dock", "dock", 1, all); err == nil {
		t.Error("a name that is taken was given again")
	}
}

// TestForkTakesTheNextNumber imitates forks of other processes that were faster.
func TestForkTakesTheNextNumber(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"automatic": {[]string{"fork", "-q"}, cmdutil.ExitOK, []string{"dock-fork-1", "dock-fork-2", "dock-fork-3"}},
		"chosen":    {[]string{"fork", "-q", "dock-fork-1"}, cmdutil.ExitError, []string{"dock-fork-1"}},
	} {
		dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(clitest.Alive)}
		start := clitest.StartsWell(dock)
		dock.Start = func(ctx context.Context, o cluster.Options) (target.Running, error) {
			switch o.Name {
			case "dock-fork-1":
				return nil, &cluster.StartError{Reason: cluster.ReasonLocked, Message: "it is in use"}
			case "dock-fork-2":
				return nil, &cluster.StartError{Reason: cluster.ReasonKeptState, Message: "there are objects"}
			}
			return start(ctx, o)
		}
		code, screen := newConsole(dock).Screen(t.Context(), test.args...)
		clitest.ExpectCode(t, code, test.code)
		var tried []string
		for _, o := range dock.Forked {
			tried = append(tried, o.Name)
		}
		clitest.ExpectSame(t, name, tried, test.want)
		if last := tried[len(tried)-1]; !strings.Contains(screen, last) {
			t.Errorf("%s is missing in\n%s", last, screen)
		}
	}
}
