// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

// programVariable makes the test binary the program.
const programVariable = "OPDOCK_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// serving starts the program, which serves a page until it is ended, and returns the address of the page.
func serving(t *testing.T, before string) (program *exec.Cmd, address string) {
	t.Helper()
	recording := filepath.Join(t.TempDir(), "recording.jsonl")
	testenv.WriteFile(t, recording, `{"opdock":"recording","version":1,"began":"2026-01-01T00:00:00Z"}`+"\n")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program = exec.CommandContext(t.Context(), "sh", "-c", before+`exec "$0" "$@"`, self, "trace", "--open", recording, "--page")
	program.Env, program.Stderr = append(os.Environ(), programVariable+"=1", "OPDOCK_HOME="+t.TempDir()), os.Stderr
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`http://\S+`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if address = shown.FindString(lines.Text()); address != "" {
			return program, address
		}
	}
	t.Fatalf("it ends without a page: %v", program.Wait())
	return nil, ""
}

func TestEndsCleanlyWithItsTerminal(t *testing.T) {
	// If the tests run with nohup, the program would inherit that. What a process handles itself is not inherited.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	program, _ := serving(t, "")
	if err := program.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestStaysWithNohup(t *testing.T) {
	program, address := serving(t, "trap '' HUP; ")
	if err := program.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(address) //nolint:noctx,gosec // the page of this test
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if err := program.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestSecondSignal(t *testing.T) {
	type signals []struct {
		after time.Duration // the first signal
		what  os.Signal
	}
	for name, test := range map[string]struct {
		sent signals
		want int // the one that ends the program at once
	}{
		"timeout":                     {signals{{time.Millisecond, syscall.SIGTERM}, {2 * time.Second, syscall.SIGTERM}}, 1},
		"SIGTERM and SIGHUP together": {signals{{time.Millisecond, syscall.SIGHUP}, {time.Minute, syscall.SIGHUP}}, 1},
		"a later SIGTERM":             {signals{{time.Second, syscall.SIGTERM}, {2 * time.Second, os.Interrupt}}, 0},
		"Ctrl-C pressed twice":        {signals{{100 * time.Millisecond, os.Interrupt}, {time.Minute, syscall.SIGTERM}}, 0},
		"Ctrl-C in timeout":           {signals{{time.Millisecond, syscall.SIGTERM}, {100 * time.Millisecond, os.Interrupt}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			again := make(chan os.Signal, len(test.sent))
			for _, one := range test.sent {
				again <- one.what
			}
			received := func() int { return len(test.sent) - len(again) - 1 }
			first := time.Now()
			second(again, first, func() time.Time { return first.Add(test.sent[received()].after) })
			if received() != test.want {
				t.Errorf("signal %d ended the program, want %d", received(), test.want)
			}
		})
	}
}

// TestSecondSignalLeavesNothing ends a command twice that waits for a program, which ignores the first signal.
func TestSecondSignalLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := emptyServer(t)
	program := exec.CommandContext(t.Context(), self, "trace", "--kubeconfig", kubeconfig, "--", "sh", "-c", "trap '' INT TERM; echo began; read never")
	program.Env, program.Stderr = append(os.Environ(), programVariable+"=1", "OPDOCK_HOME="+t.TempDir(), "TMPDIR="+temporary), os.Stderr
	program.Dir = t.TempDir()         // of no project
	waits, err := program.StdinPipe() // the program ends with it
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Fatalf("it ends at once: %v", program.Wait())
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "opdock-trace-*")); err != nil || len(left) != 1 {
		t.Fatalf("it has no directory: %v, %v", left, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	for {
		if err := program.Process.Signal(os.Interrupt); err != nil {
			break
		}
		select {
		case <-ended:
		case <-time.After(50 * time.Millisecond): // a signal is only counted once it was handled
			continue
		}
		break
	}
	left, err := filepath.Glob(filepath.Join(temporary, "opdock-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// emptyServer returns the kubeconfig of an API server without objects.
func emptyServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			fmt.Fprint(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case "/api/v1":
			fmt.Fprint(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[]}`)
		case "/apis":
			fmt.Fprint(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	testenv.WriteFile(t, kubeconfig, "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: '"+server.URL+"'}}]\n")
	return kubeconfig
}
