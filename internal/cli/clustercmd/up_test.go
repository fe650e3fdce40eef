// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/target"
)

func TestUp(t *testing.T) {
	for name, args := range map[string][]string{
		"ready":                     {"up"},
		"ready-named":               {"up", "--name", "other", "--nodes", "3", "--port", "8443", "--durable"},
		"ready-quiet":               {"up", "--quiet"},
		"ready-again":               {"up", "--name", "old"},
		"ready-after-death":         {"up", "--name", "lost"},
		"ready-new-ephemeral":       {"up", "--name", "other", "--ephemeral"},
		"ready-ephemeral-that-died": {"up", "--name", "gone", "--ephemeral"},
		"ready-after-stop":          {"up", "--name", "ending"},
	} {
		t.Run(name, func(t *testing.T) {
			gone := clitest.Dead
			gone.Name, gone.Ephemeral = "gone", true
			ending := clitest.Alive
			ending.Name, ending.Stopping = "ending", true
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(clitest.Dead, clitest.Stopped, gone, ending)}
			dock.Start = clitest.StartsWell(dock)
			code, screen := newConsole(dock).Screen(t.Context(), args...)
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			golden.Compare(t, "up/"+name, screen)
			if len(dock.Started) != 1 {
				t.Fatalf("started %d clusters", len(dock.Started))
			}
			if o := dock.Started[0]; !o.Detach || o.Binary != "/bin/opdock-controlplane" || o.Log != nil {
				t.Errorf("wrong options for a cluster in the background: %+v", o)
			}
		})
	}
}

func TestUpPassesItsFlagsOn(t *testing.T) {
	dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
	dock.Start = clitest.StartsWell(dock)
	newConsole(dock).Screen(t.Context(), "up", "--name", "other", "--nodes", "3", "--port", "8443", "--durable")
	got := dock.Started[0]
	got.Progress = nil // functions do not compare
	want := cluster.Options{
		Name: "other", Nodes: 3, Port: 8443, Durable: true, Detach: true, Binary: "/bin/opdock-controlplane",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestUpRefuses gives values that no cluster can have. Nothing is started.
func TestUpRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"--history 0s":          "--history must be more than 0, not 0s",
		"--history -5m":         "--history must be more than 0, not -5m0s",
		"--history 5":           `--history cannot be "5": not a duration`,
		"--history soon":        `--history cannot be "soon": not a duration`,
		"--nodes 0":             "--nodes must be between 1 and 5000, not 0",
		"--port 65536":          "--port must be between 0 and 65535, not 65536",
		"--timeout 0s":          "--timeout must be more than 0, not 0s",
		"--ephemeral --durable": "cannot be used together",
		"--verbose":             "--verbose needs --foreground",
	} {
		dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
		dock.Start = clitest.StartsWell(dock)
		code, screen := newConsole(dock).Screen(t.Context(), append([]string{"up"}, strings.Fields(args)...)...)
		clitest.ExpectCode(t, code, cmdutil.ExitUsage)
		if !strings.Contains(screen, want) || len(dock.Started) > 0 {
			t.Errorf("%s: started %d, want %q in\n%s", args, len(dock.Started), want, screen)
		}
	}
}

func TestUpFails(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		start func(context.Context, cluster.Options) (target.Running, error)
	}{
		"keeps-state-ephemeral": {args: []string{"up", "--name", "old", "--ephemeral"}},
		"alive-port":            {args: []string{"up", "--port", "80"}},
		"alive-nodes":           {args: []string{"up", "--nodes", "3"}},
		"alive-foreground":      {args: []string{"up", "--foreground"}},
		"alive-from":            {args: []string{"up", "--from", "base"}},
		"incomplete":            {args: []string{"up", "--name", "half"}},
		"alive-history":         {args: []string{"up", "--history", "2h"}},
		"port-taken": {
			args: []string{"up", "--name", "other"},
			start: clitest.FailsWith(&cluster.StartError{
				Reason: cluster.ReasonPortTaken, Message: "port 80 is taken", Hint: "choose another with --port",
			}),
		},
		"internal": {
			args:  []string{"up", "--name", "other"},
			start: clitest.FailsWith(&cluster.StartError{Reason: cluster.ReasonInternal, Message: "the control plane ended"}),
		},
		"internal-ephemeral": {args: []string{"up", "--name", "other", "--ephemeral"}, start: clitest.FailsWith(&cluster.StartError{
			Reason: cluster.ReasonInternal, Message: "the control plane ended",
		})},
		"no-word": {args: []string{"up", "--name", "other"}, start: clitest.FailsWith(errors.New("starting cluster \"other\": it ended"))},
		"timeout": {args: []string{"up", "--name", "other", "--timeout", "1ms"}, start: clitest.Hangs},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Clusters: clitest.Clusters(clitest.Alive, clitest.Stopped, clitest.Incomplete("/state/dock")), Start: test.start}
			s := newConsole(dock)
			code, screen := s.Screen(t.Context(), test.args...)
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			golden.Compare(t, "up/"+name, screen)
			if s.OutText.Len() > 0 {
				t.Error("a cluster that did not start is nothing to print on standard output")
			}
		})
	}
}

func TestUpLosesARaceAgainstAnotherUp(t *testing.T) {
	dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
	dock.Start = func(context.Context, cluster.Options) (target.Running, error) {
		dock.Clusters = clitest.Clusters(clitest.Alive)
		return nil, &cluster.StartError{Reason: cluster.ReasonLocked, Message: "locked"}
	}
	code, screen := newConsole(dock).Screen(t.Context(), "up")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	golden.Compare(t, "up/race", screen)
}

// If the cluster already runs, up succeeds.
func TestUpOfARunningCluster(t *testing.T) {
	for name, args := range map[string][]string{
		"alive": {"up"}, "alive-same-port": {"up", "--port", "41234"}, "alive-quiet": {"up", "--quiet"},
	} {
		dock := &clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive)}
		code, screen := newConsole(dock).Screen(t.Context(), args...)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		golden.Compare(t, "up/"+name, screen)
		if len(dock.Started) > 0 {
			t.Errorf("%s: another one was started", name)
		}
		if !dock.InUse {
			t.Errorf("%s: it still ends with the command that started it", name)
		}
	}
}

func TestUpOnAnyFreePort(t *testing.T) {
	dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane", Start: clitest.FailsWith(errors.New("that is enough"))}
	newConsole(dock).Screen(t.Context(), "up", "--port", "0")
	if len(dock.Started) != 1 || dock.Started[0].Port == 0 {
		t.Errorf("it was started with %+v", dock.Started)
	}
}

func TestUpInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
	dock.Start = func(ctx context.Context, o cluster.Options) (target.Running, error) {
		interrupt()
		return clitest.Hangs(ctx, o)
	}
	code, screen := newConsole(dock).Screen(ctx, "up")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "up/interrupted", screen)
}

func TestUpOnATerminal(t *testing.T) {
	dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
	dock.Start = clitest.StartsWell(dock)
	s := newConsole(dock)
	s.ErrWidth = 80
	code, _ := s.Screen(t.Context(), "up")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if got := s.ErrText.String(); strings.Count(got, "✓") != len(clitest.Steps)+1 {
		t.Errorf("want a check mark for each step and one for being ready, got:\n%s", got)
	}
}

func TestUpInTheForeground(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		after cluster.State // as it is found when the process has ended
		code  int
		// end is what ends the wait: the user or the cluster.
		end     func(interrupt func(), c *clitest.FakeCluster)
		stopped []string
	}{
		"foreground": {
			after: cluster.Stopped, code: cmdutil.ExitOK, stopped: []string{"dock"},
			end: func(interrupt func(), _ *clitest.FakeCluster) { interrupt() },
		},
		"foreground-verbose": {
			args: []string{"--verbose"}, after: cluster.Stopped, code: cmdutil.ExitOK, stopped: []string{"dock"},
			end: func(interrupt func(), _ *clitest.FakeCluster) { interrupt() },
		},
		"foreground-down-elsewhere": {
			after: cluster.Stopped, code: cmdutil.ExitOK,
			end: func(_ func(), c *clitest.FakeCluster) { close(c.Ended) },
		},
		"foreground-died": {
			after: cluster.Dead, code: cmdutil.ExitError,
			end: func(_ func(), c *clitest.FakeCluster) { close(c.Ended) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
			dock.Start = func(_ context.Context, o cluster.Options) (target.Running, error) {
				c := &clitest.FakeCluster{Dock: dock, Name: o.Name, Ended: make(chan struct{})}
				after := clitest.Alive
				after.State = test.after
				dock.Clusters = clitest.Clusters(after)
				test.end(interrupt, c)
				return c, nil
			}
			code, screen := newConsole(dock).Screen(ctx, append([]string{"up", "--foreground"}, test.args...)...)
			clitest.ExpectCode(t, code, test.code)
			golden.Compare(t, "up/"+name, screen)
			clitest.ExpectSame(t, "stopped", dock.Stopped, test.stopped)
			o := dock.Started[0]
			if o.Detach {
				t.Error("a cluster in the foreground must end with this process")
			}
			if _, toBuffer := o.Log.(*bytes.Buffer); toBuffer != (len(test.args) > 0) {
				t.Errorf("log goes to %v", o.Log)
			}
		})
	}
}

func TestUpBuildsTheBinaryFirst(t *testing.T) {
	dock := &clitest.FakeDock{}
	dock.Start = clitest.StartsWell(dock)
	dock.Build = func(_ context.Context, out string, progress func(cluster.BuildProgress)) error {
		progress(cluster.BuildProgress{Message: "asking go what there is to build"})
		progress(cluster.BuildProgress{Message: "compiling", Done: 100, Total: 2893, Elapsed: 12 * time.Second, Expected: 5 * time.Minute})
		dock.Binary = out
		return nil
	}
	code, screen := newConsole(dock).Screen(t.Context(), "up")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	golden.Compare(t, "up/builds", screen)
	if got, want := dock.Started[0].Binary, "/cache/opdock-controlplane"; got != want {
		t.Errorf("started %s, want %s", got, want)
	}
}

func TestBuildFails(t *testing.T) {
	for name, err := range map[string]error{
		"build-no-go": &cluster.NoGoError{Err: errors.New(`"go": not found`)},
		"build-fails": errors.New("building opdock-controlplane: compiling k8s.io/api: no space left on device"),
	} {
		t.Run(name, func(t *testing.T) {
			dock := &clitest.FakeDock{Build: func(context.Context, string, func(cluster.BuildProgress)) error { return err }}
			code, screen := newConsole(dock).Screen(t.Context(), "up")
			clitest.ExpectCode(t, code, cmdutil.ExitError)
			golden.Compare(t, "up/"+name, screen)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		dock := &clitest.FakeDock{Build: func(ctx context.Context, _ string, _ func(cluster.BuildProgress)) error {
			interrupt()
			return ctx.Err()
		}}
		code, screen := newConsole(dock).Screen(ctx, "up")
		clitest.ExpectCode(t, code, cmdutil.ExitError)
		golden.Compare(t, "up/build-interrupted", screen)
	})
}
