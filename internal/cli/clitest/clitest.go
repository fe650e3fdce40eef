// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clitest is for tests of verbs: a user at a console, on a dock that is a fake.
package clitest

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/target"
)

// Noon is when everything happens in these tests.
var Noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// FakeDock replaces package cluster. Its fields define the clusters, and record what was done.
type FakeDock struct {
	mu sync.Mutex // guards what several forks record

	Clusters map[string]cluster.Status
	Start    func(context.Context, cluster.Options) (target.Running, error)
	StopErr  error
	// InUse is what all clusters say about other processes.
	InUse  bool
	Binary string // empty: there is none
	Build  func(ctx context.Context, out string, progress func(cluster.BuildProgress)) error

	// Saved are the snapshots that there are, by name. Damaged is the error of reading one to its end.
	Saved   map[string]cluster.Snapshot
	Damaged error
	// NotStarted is why a cluster does not start again after Restore has failed.
	NotStarted error
	SaveErr    error

	Started       []cluster.Options
	Forked        []cluster.Options
	Stopped       []string
	MarkedStopped []string
	Deleted       []string
}

func (f *FakeDock) dock() target.Dock {
	return target.Dock{
		Start: func(ctx context.Context, o cluster.Options) (target.Running, error) {
			f.Started = append(f.Started, o)
			return f.Start(ctx, o)
		},
		Restore: func(ctx context.Context, o cluster.Options) (target.Running, error) {
			before := f.find(o.Name)
			if before.State == cluster.Alive {
				f.Stopped = append(f.Stopped, o.Name)
			}
			f.Started = append(f.Started, o)
			c, err := f.Start(ctx, o)
			if err != nil && before.State == cluster.Alive {
				err = &cluster.RestoreError{Err: err, Status: before, NotStarted: f.NotStarted}
			}
			return c, err
		},
		Open: func(name string) (target.Running, error) {
			if s := f.find(name); s.State != cluster.Alive {
				return nil, &cluster.NotRunningError{Status: s}
			}
			return &FakeCluster{Dock: f, Name: name}, nil
		},
		Find: func(name string) (cluster.Status, error) {
			if len(validation.IsDNS1123Label(name)) > 0 {
				return cluster.Status{}, &cluster.NameError{Name: name}
			}
			return f.find(name), nil
		},
		Home: func() string { return "/state" },
		List: func() ([]cluster.Status, error) {
			return slices.DeleteFunc(f.all(), func(s cluster.Status) bool { return s.State == cluster.NeverStarted }), nil
		},
		ListAll: func() ([]cluster.Status, error) { return f.all(), nil },
		Save: func(_ context.Context, name, path string, overwrite bool) (cluster.Snapshot, error) {
			if s := f.find(name); s.State != cluster.Alive {
				return cluster.Snapshot{}, &cluster.NotRunningError{Status: s}
			}
			if _, err := f.snapshot(path, nil); err == nil && !overwrite {
				return cluster.Snapshot{}, fs.ErrExist
			}
			return cluster.Snapshot{Path: path, Cluster: name, Revision: 4711, Objects: 120, Bytes: 3 << 20}, f.SaveErr
		},
		SnapshotFile:  func(given string) (string, error) { return "/state/snapshots/" + given + ".snapshot", nil },
		ReadSnapshot:  func(path string) (cluster.Snapshot, error) { return f.snapshot(path, nil) },
		CheckSnapshot: func(path string) (cluster.Snapshot, error) { return f.snapshot(path, f.Damaged) },
		Snapshots: func() ([]cluster.Snapshot, error) {
			var all []cluster.Snapshot
			for _, name := range slices.Sorted(maps.Keys(f.Saved)) {
				all = append(all, f.Saved[name])
			}
			return all, f.Damaged
		},
		DeleteSnapshot: func(name string) error {
			if _, exists := f.Saved[name]; !exists {
				return fs.ErrNotExist
			}
			f.Deleted = append(f.Deleted, name)
			return nil
		},
		Delete: func(name string) error {
			f.Deleted = append(f.Deleted, name)
			return nil
		},
		MarkStopped: func(name string) error {
			f.MarkedStopped = append(f.MarkedStopped, name)
			return nil
		},
		FindBinary: func() (string, error) {
			if f.Binary == "" {
				return "", &cluster.NoBinaryError{}
			}
			return f.Binary, nil
		},
		EnsureBinary: func(ctx context.Context, progress func(cluster.BuildProgress)) (string, error) {
			const cached = "/cache/opdock-controlplane"
			return cached, f.Build(ctx, cached, progress)
		},
		BuildBinary: func(ctx context.Context, out string, progress func(cluster.BuildProgress)) error {
			return f.Build(ctx, out, progress)
		},
		Assets: func(binary string) (string, error) { return filepath.Join(filepath.Dir(binary), "assets"), nil },
		Versions: func(context.Context, string) (target.ControlPlaneVersions, error) {
			return target.ControlPlaneVersions{Kubernetes: "v1.36.3", Etcd: "3.6.8", Kwok: "v0.8.0", Emulates: []string{"1.35", "1.36"}}, nil
		},
	}
}

func (f *FakeDock) snapshot(path string, failure error) (cluster.Snapshot, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".snapshot")
	s, exists := f.Saved[name]
	if !exists {
		return s, fs.ErrNotExist
	}
	return s, failure
}

// all returns the clusters by name.
func (f *FakeDock) all() (all []cluster.Status) {
	for _, name := range slices.Sorted(maps.Keys(f.Clusters)) {
		all = append(all, f.Clusters[name])
	}
	return all
}

func (f *FakeDock) find(name string) cluster.Status {
	if s, known := f.Clusters[name]; known {
		return s
	}
	return cluster.Status{Name: name, Dir: "/state/" + name, State: cluster.NeverStarted}
}

// FakeCluster is a cluster that runs.
type FakeCluster struct {
	Dock  *FakeDock
	Name  string
	File  string
	Ended chan struct{}
}

// Done is closed when the cluster has ended.
func (c *FakeCluster) Done() <-chan struct{} { return c.Ended }

// Kubeconfig returns File, or a path at which there is nothing.
func (c *FakeCluster) Kubeconfig() string {
	if c.File != "" {
		return c.File
	}
	return "/state/" + c.Name + "/kubeconfig"
}

// KubeconfigAs returns a text that names the identity.
func (c *FakeCluster) KubeconfigAs(user string, groups ...string) ([]byte, error) {
	return []byte(user + " " + quoted(groups) + "\n"), nil
}

// Stop notes that the cluster was stopped.
func (c *FakeCluster) Stop() error {
	c.Dock.Stopped = append(c.Dock.Stopped, c.Name)
	return c.Dock.StopErr
}

// Use does nothing.
func (c *FakeCluster) Use() (release func(), err error) { return func() {}, nil }

// Keep makes the dock say that the cluster is in use.
func (c *FakeCluster) Keep() error {
	c.Dock.InUse = true
	return nil
}

// InUse reports whether the dock says so.
func (c *FakeCluster) InUse() bool { return c.Dock.InUse }

// Fork starts a cluster as the dock starts all.
func (c *FakeCluster) Fork(ctx context.Context, o cluster.Options) (target.Running, error) {
	c.Dock.mu.Lock()
	c.Dock.Forked = append(c.Dock.Forked, o)
	c.Dock.mu.Unlock()
	o.Progress = func(cluster.Progress) {}
	return c.Dock.Start(ctx, o)
}

// quoted shows where one word ends and the next begins.
func quoted(words []string) string {
	var text bytes.Buffer
	for _, word := range words {
		text.WriteString("<" + word + ">")
	}
	return text.String()
}

// Console is one run of the program on a fake dock.
type Console struct {
	*cmdutil.App
	Fake             *FakeDock
	OutText, ErrText *bytes.Buffer
	Execs            []string // what Exec was called with
	verbs            []func(*cmdutil.App) *cobra.Command
	// WithVerbs makes the whole command; nil: it has only the verbs that NewConsole was given.
	WithVerbs func(*cmdutil.App) *cobra.Command
}

// NewConsole returns a console for a command that has only the given verbs.
func NewConsole(dock *FakeDock, verbs ...func(*cmdutil.App) *cobra.Command) *Console {
	if dock == nil {
		dock = &FakeDock{}
	}
	s := &Console{verbs: verbs, Fake: dock, OutText: &bytes.Buffer{}, ErrText: &bytes.Buffer{}}
	s.App = &cmdutil.App{
		Streams: cmdutil.Streams{Out: s.OutText, Err: s.ErrText},
		Program: "opdock",
		Now:     func() time.Time { return Noon },
		Dock:    dock.dock(),
		Exec: func(path string, argv, env []string) error {
			s.Execs = append(s.Execs, path+" "+quoted(argv)+" "+quoted(env))
			return nil
		},
	}
	return s
}

// Run runs a verb and returns the exit code.
func (s *Console) Run(ctx context.Context, args []string) int {
	return s.Execute(ctx, s.Root(), args)
}

// Root returns the command with its verbs.
func (s *Console) Root() *cobra.Command {
	if s.WithVerbs != nil {
		return s.WithVerbs(s.App)
	}
	root := s.NewRoot()
	for _, newVerb := range s.verbs {
		cmdutil.AddVerbs(root, "", newVerb(s.App))
	}
	return root
}

// Screen returns the exit code and both streams, as one text fit for a golden file.
func (s *Console) Screen(ctx context.Context, args ...string) (code int, screen string) {
	code = s.Run(ctx, args)
	screen = "$ opdock " + quotedForShell(args) + "\n"
	if s.OutText.Len() > 0 {
		screen += "--- stdout\n" + s.OutText.String()
	}
	if s.ErrText.Len() > 0 {
		screen += "--- stderr\n" + s.ErrText.String()
	}
	return code, screen
}

func quotedForShell(args []string) string {
	var text bytes.Buffer
	for i, arg := range args {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(cmdutil.ShellQuote(arg))
	}
	return text.String()
}

// ExpectCode fails the test if the exit code is another one.
func ExpectCode(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
}

// ExpectSame fails the test if two lists differ.
func ExpectSame(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// Clusters in each state.
var (
	// Alive runs.
	Alive = cluster.Status{
		Name: "dock", Dir: "/state/dock", State: cluster.Alive, PID: 4711, Server: "https://127.0.0.1:41234",
		Kubeconfig: "/state/dock/kubeconfig", Version: "v1.36.3", Started: Noon.Add(-3 * time.Minute),
	}
	Dead = cluster.Status{
		Name: "lost", Dir: "/state/lost", State: cluster.Dead, PID: 815, Kubeconfig: "/state/lost/kubeconfig",
		Version: "v1.36.3", Started: Noon.Add(-50 * time.Hour), LastWords: "the disk that holds /state/lost is full",
	}
	Stopped = cluster.Status{
		Name: "old", Dir: "/state/old", State: cluster.Stopped, Kubeconfig: "/state/old/kubeconfig", Version: "v1.36.3",
	}
)

// Incomplete returns a cluster that was killed before it had the objects of that source.
func Incomplete(source string) cluster.Status {
	return cluster.Status{Name: "half", Dir: "/state/half", State: cluster.Incomplete, PID: 816, Source: source}
}

// Clusters returns the clusters by name.
func Clusters(all ...cluster.Status) map[string]cluster.Status {
	byName := map[string]cluster.Status{}
	for _, s := range all {
		byName[s.Name] = s
	}
	return byName
}
