// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

func startFake(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Binary = testBinary(t)
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !c.process.ended() {
			c.process.kill()
		}
	})
	return c
}

func TestStartPrivate(t *testing.T) {
	isolate(t)
	var steps []string
	c := startFake(t, Options{Progress: func(p Progress) { steps = append(steps, p.Step+": "+p.Message) }})
	if want := []string{"state: the state is there", "etcd: etcd is up"}; !slices.Equal(steps, want) {
		t.Errorf("progress is %q, want %q", steps, want)
	}
	if got := c.Config().Host; got != "https://127.0.0.1:40000" {
		t.Errorf("host is %q", got)
	}
	if first, second := c.Config(), c.Config(); first == second {
		t.Error("Config returns the same pointer twice")
	}
	if c.Name() != "" || c.Kubeconfig() != filepath.Join(c.Dir(), "kubeconfig") {
		t.Errorf("name %q, kubeconfig %q", c.Name(), c.Kubeconfig())
	}
	info, err := os.Stat(c.Dir())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("state folder: %v, %v", info.Mode(), err)
	}
	if found, err := List(); err != nil || len(found) != 0 {
		t.Errorf("a private cluster is listed: %v, %v", found, err)
	}
	select {
	case <-c.Done():
		t.Fatal("done while it runs")
	default:
	}

	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	<-c.Done()
	if err := c.Err(); err != nil {
		t.Errorf("after a clean stop: %v", err)
	}
	if exists(c.Dir()) {
		t.Error("the state of a private cluster outlives it")
	}
}

func TestStartNamedContinues(t *testing.T) {
	isolate(t)
	c := startFake(t, Options{Name: "dev", Port: 41234})
	status, err := Find("dev")
	if err != nil {
		t.Fatal(err)
	}
	if status.State != Alive || status.PID != c.process.cmd.Process.Pid || status.Started.IsZero() ||
		status.Server != "https://127.0.0.1:41234" || status.Kubeconfig != c.Kubeconfig() || status.Version != KubernetesVersion {
		t.Errorf("status is %+v", status)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if status, _ = Find("dev"); status.State != Stopped {
		t.Errorf("after Stop it is %s", status.State)
	}
	again := startFake(t, Options{Name: "dev"})
	if got := again.Config().Host; got != "https://127.0.0.1:41234" {
		t.Errorf("started again it is at %s", got)
	}
	log, err := os.ReadFile(filepath.Join(again.Dir(), logFileName))
	if err != nil || strings.Count(string(log), "starting") != 2 {
		t.Errorf("log %q, %v", log, err)
	}
}

func TestStartFailsWithReason(t *testing.T) {
	for _, reason := range []Reason{
		ReasonPortTaken, ReasonLocked, ReasonNewerState, ReasonCorruptState, ReasonDiskFull, ReasonKeptState, ReasonInterrupted, ReasonInternal,
	} {
		t.Run(string(reason), func(t *testing.T) {
			isolate(t)
			t.Setenv(behaviourEnv, "error "+string(reason))
			_, err := Start(t.Context(), Options{Name: "dev", Binary: testBinary(t)})
			var got *StartError
			if !errors.As(err, &got) {
				t.Fatalf("error is %v", err)
			}
			want := StartError{Reason: reason, Message: "the message for " + string(reason), Hint: "the hint for " + string(reason)}
			if reason == ReasonInternal {
				want.Hint = "log: " + filepath.Join(clusterDir("dev"), logFileName)
			}
			if *got != want {
				t.Errorf("got %+v, want %+v", *got, want)
			}
		})
	}
}

func TestStartDiesBeforeReady(t *testing.T) {
	cases := []struct{ behaviour, how, says string }{
		{"die", "exit status 3", "fake control plane: something is wrong"},
		{"panic", "exit status 2", "panic: the cause"},
		{"speechless", "exit status 0", "closed the report pipe"},
	}
	for _, c := range cases {
		for _, name := range []string{"dev", ""} {
			t.Run(c.behaviour+" "+name, func(t *testing.T) {
				isolate(t)
				t.Setenv(behaviourEnv, c.behaviour)
				_, err := Start(t.Context(), Options{Name: name, Binary: testBinary(t)})
				if err == nil {
					t.Fatal("no error")
				}
				for _, want := range []string{c.how, c.says} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%q is missing in: %v", want, err)
					}
				}
				log := filepath.Join(clusterDir("dev"), logFileName)
				if name != "" && !strings.Contains(err.Error(), log) {
					t.Errorf("the path of the log is missing in: %v", err)
				}
				if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	}
}

func TestStartLogsToWriter(t *testing.T) {
	isolate(t)
	var log tail
	log.limit = 1 << 20
	startFake(t, Options{Name: "dev", Log: &log})
	// The pipe may lag behind the report.
	testenv.Eventually(t, "the log arrives", func() bool { return strings.Contains(string(log.bytes()), "starting") })
	if exists(filepath.Join(clusterDir("dev"), logFileName)) {
		t.Error("there is a log file as well")
	}

	t.Setenv(behaviourEnv, "die")
	_, err := Start(t.Context(), Options{Log: &log, Binary: testBinary(t)})
	if err == nil || !strings.Contains(err.Error(), "something is wrong") {
		t.Errorf("the log is not quoted: %v", err)
	}
}

func TestStartLogsToFile(t *testing.T) {
	isolate(t)
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	t.Setenv(behaviourEnv, "die")
	_, err = Start(t.Context(), Options{Log: log, Binary: testBinary(t)})
	if err == nil || !strings.Contains(err.Error(), "something is wrong") || !strings.Contains(err.Error(), log.Name()) {
		t.Errorf("the log is not quoted and named: %v", err)
	}
}

func TestStartCancelled(t *testing.T) {
	for _, name := range []string{"dev", ""} {
		t.Run("name "+name, func(t *testing.T) {
			isolate(t)
			t.Setenv(behaviourEnv, "hang")
			ctx, cancel := context.WithCancelCause(t.Context())
			because := errors.New("enough of it")
			_, err := Start(ctx, Options{Name: name, Detach: name != "", Binary: testBinary(t), Progress: func(p Progress) {
				if p.Step == "etcd" {
					cancel(because)
				}
			}})
			if !errors.Is(err, context.Canceled) || !errors.Is(err, because) {
				t.Fatalf("error is %v", err)
			}
			if !strings.Contains(err.Error(), "etcd is up") {
				t.Errorf("what was going on is missing in: %v", err)
			}
			if name != "" && isHeld(t, clusterDir(name)) {
				t.Error("the control plane still runs")
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestStartRefuses(t *testing.T) {
	isolate(t)
	noFile := filepath.Join(t.TempDir(), "nothing")
	cases := map[string]struct {
		options Options
		says    string
	}{
		"name":            {Options{Name: "Dev"}, `"Dev" is not a valid cluster name`},
		"nodes":           {Options{Nodes: -1}, "-1 is not a valid number of nodes"},
		"port":            {Options{Port: 70000}, "70000 is not a valid port"},
		"history":         {Options{History: -time.Minute}, "-1m0s is not a valid history"},
		"detached log":    {Options{Name: "dev", Detach: true, Log: &tail{}}, "must be an *os.File"},
		"detached unseen": {Options{Detach: true}, "needs a name"},
		"no binary":       {Options{Binary: noFile}, noFile},
		"not a program":   {Options{Name: "dev", Binary: os.DevNull}, "not executable"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), c.options)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %v, want one with %q", err, c.says)
			}
		})
	}
	if exists(clusterDir("dev")) {
		t.Error("a start that was refused left a state folder")
	}
}

func TestStartWhileAlive(t *testing.T) {
	isolate(t)
	winner := startFake(t, Options{Name: "dev"})
	log := filepath.Join(winner.Dir(), logFileName)
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var locked *StartError
	_, err = Start(t.Context(), Options{Name: "dev", Binary: testBinary(t)})
	if !errors.As(err, &locked) || locked.Reason != ReasonLocked || locked.Hint == "" {
		t.Errorf("error is %v", err)
	}
	if after, _ := os.ReadFile(log); string(after) != string(before) {
		t.Errorf("the log was %q and is %q", before, after)
	}
	// The same without the check that comes first, as when both start at the same moment.
	o := Options{Name: "dev", Binary: testBinary(t)}
	if _, err = startIn(t.Context(), o, o.Binary, winner.Dir()); !errors.As(err, &locked) || locked.Reason != ReasonLocked {
		t.Errorf("error is %v", err)
	}
	if after, _ := os.ReadFile(log); !strings.HasPrefix(string(after), string(before)) {
		t.Errorf("the log was %q and is %q", before, after)
	}
	if status, _ := Find("dev"); status.State != Alive || status.PID != winner.process.cmd.Process.Pid {
		t.Errorf("the winner is %+v", status)
	}
}

func TestStartTwiceAtOnce(t *testing.T) {
	isolate(t)
	clusters, failures := make([]*Cluster, 4), make([]error, 4)
	var group sync.WaitGroup
	for i := range clusters {
		group.Go(func() {
			clusters[i], failures[i] = Start(t.Context(), Options{Name: "dev", Binary: testBinary(t)})
		})
	}
	group.Wait()
	started := 0
	for i, err := range failures {
		var locked *StartError
		switch {
		case err == nil:
			started++
			defer clusters[i].Stop()
		case !errors.As(err, &locked) || locked.Reason != ReasonLocked:
			t.Errorf("a loser gets %v", err)
		}
	}
	if started != 1 {
		t.Fatalf("%d were started", started)
	}
	if _, err := Open("dev"); err != nil {
		t.Error(err)
	}
}
