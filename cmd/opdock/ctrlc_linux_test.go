// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Operators take a second signal for the wish to end at once.
func TestATracedProgramGetsOneSignal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := emptyServer(t)
	const program = `trap 'ends=1' INT; trap 'exit 8' TERM; echo began; while [ -z "$ends" ]; do sleep 1; done; sleep 1; exit 7`
	for name, test := range map[string]struct {
		end  func(t *testing.T, traced *exec.Cmd, screen *os.File)
		want int
	}{
		"Ctrl-C": {func(t *testing.T, _ *exec.Cmd, screen *os.File) {
			t.Helper()
			if _, err := screen.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
		}, 7},
		"opdock is ended": {func(t *testing.T, traced *exec.Cmd, _ *os.File) {
			t.Helper()
			if err := traced.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			screen, terminal := openTerminal(t)
			traced := exec.CommandContext(t.Context(), self, "trace", "--kubeconfig", kubeconfig, "--", "sh", "-c", program)
			traced.Env, traced.Dir = append(os.Environ(), programVariable+"=1", "OPDOCK_HOME="+t.TempDir()), t.TempDir()
			traced.Stdin, traced.Stdout, traced.Stderr = terminal, terminal, terminal
			traced.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := traced.Start(); err != nil {
				t.Fatal(err)
			}
			terminal.Close()
			ended := false
			for lines := bufio.NewScanner(screen); lines.Scan(); { // until the program has closed its terminal
				t.Log(lines.Text())
				if !ended && strings.TrimSpace(lines.Text()) == "began" {
					test.end(t, traced, screen)
					ended = true
				}
			}
			_ = traced.Wait() // its exit code is the program's
			if code := traced.ProcessState.ExitCode(); code != test.want {
				t.Errorf("the program exited with %d, want %d", code, test.want)
			}
		})
	}
}

// openTerminal returns a terminal for a program, and the side that a user types to and reads from.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, terminal
}
