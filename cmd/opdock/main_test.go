// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

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
