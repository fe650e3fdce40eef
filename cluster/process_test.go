// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

func TestServeArgs(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    string
	}{
		"private":  {Options{}, "serve --dir /d --report-fd 3 --lifeline-fd 4 --ephemeral"},
		"named":    {Options{Name: "dev"}, "serve --dir /d --report-fd 3 --lifeline-fd 4"},
		"detached": {Options{Name: "dev", Detach: true}, "serve --dir /d --report-fd 3"},
		"all": {Options{Name: "dev", Nodes: 3, Port: 6443, Ephemeral: true, Durable: true},
			"serve --dir /d --report-fd 3 --lifeline-fd 4 --nodes 3 --port 6443 --ephemeral --durable"},
		"from elsewhere": {Options{Name: "dev", From: "/s/base.snapshot", Replace: true, History: time.Hour, Kubernetes: "1.34"},
			"serve --dir /d --report-fd 3 --lifeline-fd 4 --from /s/base.snapshot --replace --history 1h0m0s --kubernetes 1.34"},
		"plugins": {Options{Name: "dev", AdmissionPlugins: []string{"AlwaysPullImages", "OwnerReferencesPermissionEnforcement"}},
			"serve --dir /d --report-fd 3 --lifeline-fd 4 --admission-plugins AlwaysPullImages,OwnerReferencesPermissionEnforcement"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := serveArgs("/d", c.options); !slices.Equal(got, strings.Fields(c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A test process that dies must leave no control plane behind, even if children of it live on.
func TestEndsWithItsHolder(t *testing.T) {
	for _, name := range []string{"dev", ""} {
		t.Run("name "+name, func(t *testing.T) {
			isolate(t)
			holder, holds := startHolder(t, name)
			if !isHeld(t, holds.Dir) {
				t.Fatal("the control plane does not run")
			}
			if err := holder.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			testenv.Eventually(t, "the control plane has ended", func() bool { return !isHeld(t, holds.Dir) })
			if err := syscall.Kill(holds.Bystander, 0); err != nil {
				t.Fatalf("the other child has ended, so this test shows nothing: %v", err)
			}
			if name == "" {
				testenv.Eventually(t, "the state is gone", func() bool { return !exists(holds.Dir) })
			} else if status, err := Find(name); err != nil || status.State != Stopped {
				t.Errorf("status is %+v, %v", status, err)
			}
		})
	}
}

func TestDetachedHasItsOwnSession(t *testing.T) {
	isolate(t)
	for _, detach := range []bool{true, false} {
		c := startFake(t, Options{Name: fmt.Sprintf("detach-%v", detach), Detach: detach})
		pid := c.process.cmd.Process.Pid
		group, err := syscall.Getpgid(pid)
		if err != nil || group != pid {
			t.Errorf("detach %v: process group %d of process %d: %v", detach, group, pid, err)
		}
		if (c.process.lifeline == nil) != detach {
			t.Errorf("detach %v: lifeline %v", detach, c.process.lifeline)
		}
	}
}

func TestErrAfterCrash(t *testing.T) {
	isolate(t)
	c := startFake(t, Options{Name: "dev"})
	if err := c.Err(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	if err := c.process.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	err := c.Err()
	if err == nil || !strings.Contains(err.Error(), "killed") || !strings.Contains(err.Error(), logFileName) {
		t.Errorf("error is %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stopping what has ended: %v", err)
	}
	if status, _ := Find("dev"); status.State != Dead || status.PID != c.process.cmd.Process.Pid {
		t.Errorf("status is %+v", status)
	}
}

func TestPrivateStateIsRemovedAfterKill(t *testing.T) {
	isolate(t)
	c := startFake(t, Options{})
	if err := c.process.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if exists(c.Dir()) {
		t.Error("the state is still there")
	}
}

func TestStopFailures(t *testing.T) {
	t.Run("killed if it does not listen", func(t *testing.T) {
		isolate(t)
		t.Setenv(behaviourEnv, "stubborn")
		c := startFake(t, Options{Name: "dev"})
		err := c.process.stop(50 * time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), "was killed") {
			t.Errorf("error is %v", err)
		}
		if isHeld(t, c.Dir()) {
			t.Error("it still runs")
		}
	})
	t.Run("killed if its start is canceled", func(t *testing.T) {
		isolate(t)
		t.Setenv(behaviourEnv, "stubborn")
		c := startFake(t, Options{Name: "dev"})
		c.process.giveUp(50 * time.Millisecond)
		if status := find(t, "dev"); status.State != Stopped {
			t.Errorf("it was killed on purpose, and is %+v", status)
		}
	})
	t.Run("not killed if detached", func(t *testing.T) {
		isolate(t)
		t.Setenv(behaviourEnv, "stubborn")
		c := startFake(t, Options{Name: "dev", Detach: true})
		kill := fmt.Sprintf("kill -9 %d", c.process.cmd.Process.Pid)
		for _, err := range []error{c.process.stop(50 * time.Millisecond), stopByLock(c.Dir(), syscall.SIGTERM, 50*time.Millisecond)} {
			if err == nil || !strings.Contains(err.Error(), kill) {
				t.Errorf("error is %v, want one with %q", err, kill)
			}
		}
		if !isHeld(t, c.Dir()) {
			t.Error("it was killed")
		}
	})
	t.Run("reported if not clean", func(t *testing.T) {
		isolate(t)
		t.Setenv(behaviourEnv, "dirty")
		c := startFake(t, Options{Name: "dev"})
		if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 4") {
			t.Errorf("error is %v", err)
		}
		if err := c.Stop(); err != nil {
			t.Errorf("the second time: %v", err)
		}
	})
}

func TestStopWhatAnotherProcessStarted(t *testing.T) {
	isolate(t)
	started := startFake(t, Options{Name: "dev", Detach: true})
	opened, err := Open("dev")
	if err != nil {
		t.Fatal(err)
	}
	if opened.Config().Host != started.Config().Host || opened.Kubeconfig() != started.Kubeconfig() || opened.Done() != nil {
		t.Errorf("opened %+v", opened)
	}
	for range 2 {
		if err := opened.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	<-started.Done()
	if err := started.Err(); err != nil {
		t.Error(err)
	}
	// A new one of the same name is none of the old handle's business.
	again := startFake(t, Options{Name: "dev", Detach: true})
	if err := opened.Stop(); err != nil {
		t.Error(err)
	}
	if !isHeld(t, again.Dir()) {
		t.Error("the new one was stopped")
	}
}

func TestStopLeavesSuccessorAlone(t *testing.T) {
	isolate(t)
	t.Setenv(behaviourEnv, "succeeded")
	c := startFake(t, Options{Name: "dev", Detach: true})
	if err := stopByLock(c.Dir(), syscall.SIGTERM, 10*time.Second); err != nil {
		t.Error(err)
	}
	if !isHeld(t, c.Dir()) {
		t.Error("it was signalled twice")
	}
}

func TestStopWaitsAfterUnlink(t *testing.T) {
	isolate(t)
	t.Setenv(behaviourEnv, "unlink first")
	marker := filepath.Join(t.TempDir(), "marker")
	t.Setenv("OPDOCK_TEST_MARKER", marker)
	startFake(t, Options{Name: "dev", Detach: true, Ephemeral: true})
	opened, err := Open("dev")
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Stop(); err != nil {
		t.Fatal(err)
	}
	if !exists(marker) {
		t.Error("Stop returned while the control plane was still removing its state")
	}
}

// Another process may have the pid of a dead control plane by now.
func TestStopNeverSignalsRecycledPid(t *testing.T) {
	isolate(t)
	bystander := exec.Command(testBinary(t), "bystander")
	stdin, err := bystander.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	content := fmt.Sprintf(`{"pid":%d,"started":"2026-01-02T03:04:05Z"}`, bystander.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, lockFileName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stopByLock(dir, syscall.SIGTERM, time.Second); err != nil {
		t.Error(err)
	}
	lock, err := openLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if pid, err := terminateHolder(lock, bystander.Process.Pid, syscall.SIGTERM); pid != 0 || err != nil {
		t.Errorf("signalled %d, %v", pid, err)
	}
	stdin.Close()
	if err := bystander.Wait(); err != nil {
		t.Errorf("the bystander was hit: %v", err)
	}
}

func TestStopWithoutPid(t *testing.T) {
	isolate(t)
	dir := t.TempDir()
	lock, err := takeLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, content := range []string{"", "garbage", `{"pid":-1}`, `{"pid":1}`, `{"pid":"7"}`} {
		if err := lock.Truncate(0); err != nil {
			t.Fatal(err)
		}
		if _, err := lock.WriteAt([]byte(content), 0); err != nil {
			t.Fatal(err)
		}
		if err := stopByLock(dir, syscall.SIGTERM, 20*time.Millisecond); err == nil || !strings.Contains(err.Error(), "has not written its pid") {
			t.Errorf("%q: error is %v", content, err)
		}
	}
}

func TestReadReportsSkipsWhatItDoesNotKnow(t *testing.T) {
	pipe := io.MultiReader(
		strings.NewReader("\nnot json\n[1]\n{\"event\":\"progress\",\"step\":\"etcd\",\"elapsedMs\":52,\"new\":{}}\n"),
		strings.NewReader(`{"event":"error","reason":"New","message":"cut off at the end without a newline"}`),
	)
	var got []string
	for r := range readReports(pipe, nil) {
		got = append(got, fmt.Sprint(r.Event, " ", r.Step, r.Reason, " ", r.elapsed()))
	}
	if want := []string{"progress etcd 52ms", "error New 0s"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
