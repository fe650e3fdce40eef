// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is when everything happens in these tests.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// fakeDock stands in for package cluster. Its fields say what there is, and record what was done.
type fakeDock struct {
	clusters map[string]cluster.Status
	start    func(context.Context, cluster.Options) (Running, error)
	stopErr  error
	binary   string // empty: there is none
	build    func(ctx context.Context, out string, progress func(cluster.BuildProgress)) error

	started       []cluster.Options
	stopped       []string
	markedStopped []string
	deleted       []string
}

func (f *fakeDock) dock() Dock {
	return Dock{
		Start: func(ctx context.Context, o cluster.Options) (Running, error) {
			f.started = append(f.started, o)
			return f.start(ctx, o)
		},
		Open: func(name string) (Running, error) {
			if s := f.find(name); s.State != cluster.Alive {
				return nil, &cluster.NotRunningError{Status: s}
			}
			return &fakeCluster{dock: f, name: name}, nil
		},
		Find: func(name string) (cluster.Status, error) { return f.find(name), nil },
		Home: func() string { return "/state" },
		List: func() ([]cluster.Status, error) {
			var all []cluster.Status
			for _, name := range slices.Sorted(maps.Keys(f.clusters)) {
				all = append(all, f.clusters[name])
			}
			return all, nil
		},
		Delete: func(name string) error {
			f.deleted = append(f.deleted, name)
			return nil
		},
		MarkStopped: func(name string) error {
			f.markedStopped = append(f.markedStopped, name)
			return nil
		},
		FindBinary: func() (string, error) {
			if f.binary == "" {
				return "", &cluster.NoBinaryError{}
			}
			return f.binary, nil
		},
		EnsureBinary: func(ctx context.Context, progress func(cluster.BuildProgress)) (string, error) {
			const cached = "/cache/opdock-controlplane"
			return cached, f.build(ctx, cached, progress)
		},
		BuildBinary: func(ctx context.Context, out string, progress func(cluster.BuildProgress)) error {
			return f.build(ctx, out, progress)
		},
		Assets: func(binary string) (string, error) { return filepath.Join(filepath.Dir(binary), "assets"), nil },
		Versions: func(context.Context, string) (ControlPlaneVersions, error) {
			return ControlPlaneVersions{Kubernetes: "v1.36.3", Etcd: "3.6.8", Kwok: "v0.8.0"}, nil
		},
	}
}

func (f *fakeDock) find(name string) cluster.Status {
	if s, known := f.clusters[name]; known {
		return s
	}
	return cluster.Status{Name: name, Dir: "/state/" + name, State: cluster.NeverStarted}
}

// fakeCluster is a cluster that runs.
type fakeCluster struct {
	dock       *fakeDock
	name       string
	kubeconfig string
	done       chan struct{}
}

func (c *fakeCluster) Done() <-chan struct{} { return c.done }

func (c *fakeCluster) Kubeconfig() string {
	if c.kubeconfig != "" {
		return c.kubeconfig
	}
	return "/state/" + c.name + "/kubeconfig"
}

func (c *fakeCluster) KubeconfigAs(user string, groups ...string) ([]byte, error) {
	return []byte(user + " " + quoted(groups) + "\n"), nil
}

func (c *fakeCluster) Stop() error {
	c.dock.stopped = append(c.dock.stopped, c.name)
	return c.dock.stopErr
}

// quoted shows where one word ends and the next begins.
func quoted(words []string) string {
	var text bytes.Buffer
	for _, word := range words {
		text.WriteString("<" + word + ">")
	}
	return text.String()
}

// console is one run of the program on a fake dock.
type console struct {
	*App
	dock     *fakeDock
	out, err *bytes.Buffer
	execs    []string // what Exec was called with
}

func newConsole(dock *fakeDock) *console {
	if dock == nil {
		dock = &fakeDock{}
	}
	s := &console{dock: dock, out: &bytes.Buffer{}, err: &bytes.Buffer{}}
	s.App = &App{
		Streams: Streams{Out: s.out, Err: s.err},
		Program: "opdock",
		Now:     func() time.Time { return noon },
		Dock:    dock.dock(),
		Exec: func(path string, argv, env []string) error {
			s.execs = append(s.execs, path+" "+quoted(argv)+" "+quoted(env))
			return nil
		},
	}
	return s
}

// run returns the exit code and both streams, as one text fit for a golden file.
func (s *console) run(ctx context.Context, args ...string) (code int, screen string) {
	code = s.Run(ctx, args)
	screen = "$ opdock " + quotedForShell(args) + "\n"
	if s.out.Len() > 0 {
		screen += "--- stdout\n" + s.out.String()
	}
	if s.err.Len() > 0 {
		screen += "--- stderr\n" + s.err.String()
	}
	return code, screen
}

func quotedForShell(args []string) string {
	var text bytes.Buffer
	for i, arg := range args {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(shellQuote(arg))
	}
	return text.String()
}

// golden compares with a file under testdata. Run the tests with -update to write what they saw.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading the golden file (run the test with -update to write it): %v", err)
	}
	if string(want) != got {
		t.Errorf("differs from %s\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}

func expectCode(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
}

func expectSame(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

var (
	alive = cluster.Status{
		Name: "dock", Dir: "/state/dock", State: cluster.Alive, PID: 4711, Server: "https://127.0.0.1:41234",
		Kubeconfig: "/state/dock/kubeconfig", Version: "v1.36.3", Started: noon.Add(-3 * time.Minute),
	}
	dead = cluster.Status{
		Name: "lost", Dir: "/state/lost", State: cluster.Dead, PID: 815, Kubeconfig: "/state/lost/kubeconfig",
		Version: "v1.36.3", Started: noon.Add(-50 * time.Hour), LastWords: "the disk that holds /state/lost is full",
	}
	stopped = cluster.Status{
		Name: "old", Dir: "/state/old", State: cluster.Stopped, Kubeconfig: "/state/old/kubeconfig", Version: "v1.36.3",
	}
)

func clusters(all ...cluster.Status) map[string]cluster.Status {
	byName := map[string]cluster.Status{}
	for _, s := range all {
		byName[s.Name] = s
	}
	return byName
}

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"/home/a/.local/state": "/home/a/.local/state",
		"":                     "''",
		"two words":            "'two words'",
		"it's":                 `'it'\''s'`,
		"$HOME":                "'$HOME'",
	} {
		if got := shellQuote(word); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", word, got, want)
		}
	}
}

func TestCommandNamesTheClusterOnlyWhenNeeded(t *testing.T) {
	app := newConsole(nil).App
	if got, want := app.command("down", "dock"), "opdock down"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	app.Env = []string{"OPDOCK_CLUSTER=first", "OPDOCK_CLUSTER=other"}
	app.Program = "bin/opdock"
	if got, want := app.command("down", "other"), "bin/opdock down"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := app.command("down", "dock", "--delete"), "bin/opdock down --name dock --delete"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReport(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"nothing":     {nil, 0, ""},
		"plain":       {errors.New("it rained"), 1, "opdock: it rained\n"},
		"hints":       {withHints(errors.New("it rained"), "take an umbrella"), 1, "opdock: it rained\n  take an umbrella\n"},
		"usage":       {&usageError{message: "no such flag"}, 2, "opdock: no such flag\n"},
		"said before": {&saidError{"not alive"}, 1, ""},
		"bad name":    {&cluster.NameError{Name: "A B"}, 2, "opdock: " + (&cluster.NameError{Name: "A B"}).Error() + "\n"},
		"several": {
			errors.Join(withHints(errors.New("it rained"), "take an umbrella"), errors.New("it was cold")), 1,
			"opdock: it rained\n  take an umbrella\nopdock: it was cold\n",
		},
		"start error": {
			&cluster.StartError{Reason: cluster.ReasonPortTaken, Message: "port 80 is taken", Hint: "take another"}, 1,
			"opdock: port 80 is taken\n  take another\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			expectCode(t, s.report(test.err), test.code)
			if got := s.err.String(); got != test.stderr {
				t.Errorf("got %q, want %q", got, test.stderr)
			}
		})
	}
}
