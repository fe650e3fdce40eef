// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
)

// startsWell is a start that goes through all its steps.
func startsWell(f *fakeDock) func(context.Context, cluster.Options) (Running, error) {
	return func(_ context.Context, o cluster.Options) (Running, error) {
		for i, step := range upSteps {
			o.Progress(cluster.Progress{Step: step.step, Message: step.step + " is up", Elapsed: time.Duration(i+1) * 100 * time.Millisecond})
		}
		return &fakeCluster{dock: f, name: o.Name}, nil
	}
}

func failsWith(err error) func(context.Context, cluster.Options) (Running, error) {
	return func(context.Context, cluster.Options) (Running, error) { return nil, err }
}

// hangs is a start that gets nowhere until it is told to stop, and then says what a control plane says.
func hangs(ctx context.Context, _ cluster.Options) (Running, error) {
	<-ctx.Done()
	return nil, &cluster.StartError{Reason: cluster.ReasonInterrupted, Message: "interrupted"}
}

func TestUp(t *testing.T) {
	for name, args := range map[string][]string{
		"ready":                     {"up"},
		"ready-named":               {"up", "--name", "other", "--nodes", "3", "--port", "8443", "--durable"},
		"ready-quiet":               {"up", "--quiet"},
		"ready-again":               {"up", "--name", "old"},
		"ready-after-death":         {"up", "--name", "lost"},
		"ready-new-ephemeral":       {"up", "--name", "other", "--ephemeral"},
		"ready-ephemeral-that-died": {"up", "--name", "gone", "--ephemeral"},
	} {
		t.Run(name, func(t *testing.T) {
			gone := dead
			gone.Name, gone.Ephemeral = "gone", true
			dock := &fakeDock{binary: "/bin/opdock-controlplane", clusters: clusters(dead, stopped, gone)}
			dock.start = startsWell(dock)
			code, screen := newConsole(dock).run(t.Context(), args...)
			expectCode(t, code, exitOK)
			golden(t, "up/"+name, screen)
			if len(dock.started) != 1 {
				t.Fatalf("started %d clusters", len(dock.started))
			}
			if o := dock.started[0]; !o.Detach || o.Binary != "/bin/opdock-controlplane" || o.Log != nil {
				t.Errorf("wrong options for a cluster in the background: %+v", o)
			}
		})
	}
}

func TestUpPassesItsFlagsOn(t *testing.T) {
	dock := &fakeDock{binary: "/bin/opdock-controlplane"}
	dock.start = startsWell(dock)
	newConsole(dock).run(t.Context(), "up", "--name", "other", "--nodes", "3", "--port", "8443", "--durable")
	got := dock.started[0]
	got.Progress = nil // functions do not compare
	want := cluster.Options{
		Name: "other", Nodes: 3, Port: 8443, Durable: true, Detach: true, Binary: "/bin/opdock-controlplane",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestUpFails(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		start func(context.Context, cluster.Options) (Running, error)
	}{
		"alive":                 {args: []string{"up"}},
		"keeps-state-ephemeral": {args: []string{"up", "--name", "old", "--ephemeral"}},
		"alive-port":            {args: []string{"up", "--port", "80"}},
		"port-taken": {
			args: []string{"up", "--name", "other"},
			start: failsWith(&cluster.StartError{
				Reason: cluster.ReasonPortTaken, Message: "port 80 is taken", Hint: "choose another with --port",
			}),
		},
		"internal": {
			args:  []string{"up", "--name", "other"},
			start: failsWith(&cluster.StartError{Reason: cluster.ReasonInternal, Message: "the control plane ended"}),
		},
		"internal-ephemeral": {args: []string{"up", "--name", "other", "--ephemeral"}, start: failsWith(&cluster.StartError{
			Reason: cluster.ReasonInternal, Message: "the control plane ended",
		})},
		"no-word": {args: []string{"up", "--name", "other"}, start: failsWith(errors.New("starting cluster \"other\": it ended"))},
		"timeout": {args: []string{"up", "--name", "other", "--timeout", "1ms"}, start: hangs},
	} {
		t.Run(name, func(t *testing.T) {
			dock := &fakeDock{binary: "/bin/opdock-controlplane", clusters: clusters(alive, stopped), start: test.start}
			s := newConsole(dock)
			code, screen := s.run(t.Context(), test.args...)
			expectCode(t, code, exitError)
			golden(t, "up/"+name, screen)
			if s.out.Len() > 0 {
				t.Error("a cluster that did not start is nothing to print on standard output")
			}
		})
	}
}

func TestUpLosesARaceAgainstAnotherUp(t *testing.T) {
	dock := &fakeDock{binary: "/bin/opdock-controlplane"}
	dock.start = func(context.Context, cluster.Options) (Running, error) {
		dock.clusters = clusters(alive)
		return nil, &cluster.StartError{Reason: cluster.ReasonLocked, Message: "locked"}
	}
	code, screen := newConsole(dock).run(t.Context(), "up")
	expectCode(t, code, exitError)
	golden(t, "up/race", screen)
}

func TestUpInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	dock := &fakeDock{binary: "/bin/opdock-controlplane"}
	dock.start = func(ctx context.Context, o cluster.Options) (Running, error) {
		interrupt()
		return hangs(ctx, o)
	}
	code, screen := newConsole(dock).run(ctx, "up")
	expectCode(t, code, exitError)
	golden(t, "up/interrupted", screen)
}

func TestUpOnATerminal(t *testing.T) {
	dock := &fakeDock{binary: "/bin/opdock-controlplane"}
	dock.start = startsWell(dock)
	s := newConsole(dock)
	s.ErrWidth = 80
	code, _ := s.run(t.Context(), "up")
	expectCode(t, code, exitOK)
	if got := s.err.String(); strings.Count(got, "✓") != len(upSteps)+1 {
		t.Errorf("want a check mark for each step and one for being ready, got:\n%s", got)
	}
}

func TestUpInTheForeground(t *testing.T) {
	for name, test := range map[string]struct {
		args  []string
		after cluster.State // as it is found when the process has ended
		code  int
		// end is what ends the wait: the user or the cluster.
		end     func(interrupt func(), c *fakeCluster)
		stopped []string
	}{
		"foreground": {
			after: cluster.Stopped, code: exitOK, stopped: []string{"dock"},
			end: func(interrupt func(), _ *fakeCluster) { interrupt() },
		},
		"foreground-verbose": {
			args: []string{"--verbose"}, after: cluster.Stopped, code: exitOK, stopped: []string{"dock"},
			end: func(interrupt func(), _ *fakeCluster) { interrupt() },
		},
		"foreground-down-elsewhere": {
			after: cluster.Stopped, code: exitOK,
			end: func(_ func(), c *fakeCluster) { close(c.done) },
		},
		"foreground-died": {
			after: cluster.Dead, code: exitError,
			end: func(_ func(), c *fakeCluster) { close(c.done) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			dock := &fakeDock{binary: "/bin/opdock-controlplane"}
			dock.start = func(_ context.Context, o cluster.Options) (Running, error) {
				c := &fakeCluster{dock: dock, name: o.Name, done: make(chan struct{})}
				after := alive
				after.State = test.after
				dock.clusters = clusters(after)
				test.end(interrupt, c)
				return c, nil
			}
			code, screen := newConsole(dock).run(ctx, append([]string{"up", "--foreground"}, test.args...)...)
			expectCode(t, code, test.code)
			golden(t, "up/"+name, screen)
			expectSame(t, "stopped", dock.stopped, test.stopped)
			o := dock.started[0]
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
	dock := &fakeDock{}
	dock.start = startsWell(dock)
	dock.build = func(_ context.Context, out string, progress func(cluster.BuildProgress)) error {
		progress(cluster.BuildProgress{Message: "asking go what there is to build"})
		progress(cluster.BuildProgress{Message: "compiling", Done: 100, Total: 2893, Elapsed: 12 * time.Second, Expected: 5 * time.Minute})
		dock.binary = out
		return nil
	}
	code, screen := newConsole(dock).run(t.Context(), "up")
	expectCode(t, code, exitOK)
	golden(t, "up/builds", screen)
	if got, want := dock.started[0].Binary, "/cache/opdock-controlplane"; got != want {
		t.Errorf("started %s, want %s", got, want)
	}
}

func TestBuildFails(t *testing.T) {
	for name, err := range map[string]error{
		"build-no-go": &cluster.NoGoError{Err: errors.New(`"go": not found`)},
		"build-fails": errors.New("building opdock-controlplane: compiling k8s.io/api: no space left on device"),
	} {
		t.Run(name, func(t *testing.T) {
			dock := &fakeDock{build: func(context.Context, string, func(cluster.BuildProgress)) error { return err }}
			code, screen := newConsole(dock).run(t.Context(), "up")
			expectCode(t, code, exitError)
			golden(t, "up/"+name, screen)
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		dock := &fakeDock{build: func(ctx context.Context, _ string, _ func(cluster.BuildProgress)) error {
			interrupt()
			return ctx.Err()
		}}
		code, screen := newConsole(dock).run(ctx, "up")
		expectCode(t, code, exitError)
		golden(t, "up/build-interrupted", screen)
	})
}
