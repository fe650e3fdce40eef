// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/testenv"
)

// fakeDelve is a program that takes the place of Delve.
func fakeDelve(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlv")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// answerForDelve says for it that the operator is stopped at first, and then runs.
func answerForDelve(t *testing.T) (port int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for _, running := range []bool{false, true} {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(conn, `{"id":1,"result":{"State":{"Running":%t}},"error":null}`, running)
			conn.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port
}

func TestDebugger(t *testing.T) {
	shellPath, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	operator, _ := shell(t, "while :; do sleep 1; done")
	told, port := filepath.Join(t.TempDir(), "arguments"), answerForDelve(t)
	d, err := attachDebugger(t.Context(), fakeDelve(t, `echo "$@" > `+told+`; exec sleep 1000`), operator, shellPath, port, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	var arguments []byte
	testenv.Eventually(t, "it was told what to do", func() error {
		arguments, err = os.ReadFile(told)
		if err == nil && len(arguments) == 0 {
			err = errors.New("nothing yet")
		}
		return err
	})
	want := fmt.Sprintf("attach %d %s --headless --listen=127.0.0.1:%d --accept-multiclient --continue", operator.cmd.Process.Pid, shellPath, port)
	if !strings.HasPrefix(string(arguments), want) {
		t.Errorf("it was told %s", arguments)
	}
	// As if it had ended while it attached.
	if err := operator.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	d.stop()
	select {
	case <-d.done:
	default:
		t.Error("the debugger goes on")
	}
	if killed := operator.stop(10 * time.Second); killed {
		t.Error("the operator was left stopped")
	}
	(*debugger)(nil).stop()

	operator, _ = shell(t, "while :; do sleep 1; done")
	if _, err := attachDebugger(t.Context(), fakeDelve(t, "echo no permission; exit 1"), operator, shellPath, port, os.Environ()); err == nil || !strings.Contains(err.Error(), "no permission") {
		t.Errorf("got %v", err)
	}
}

func TestBuildForADebugger(t *testing.T) {
	b := &builder{module: "example.com/ship", main: "./cmd", BuildOptions: BuildOptions{Debug: true}}
	if args := b.arguments("out"); !slices.Contains(args, "-gcflags=example.com/ship/...=-N -l") || slices.Contains(args, "-ldflags=-w") {
		t.Errorf("got %q", args)
	}
	b.env = []string{"GOFLAGS=-gcflags=all=-N"}
	if args := b.arguments("out"); strings.Contains(strings.Join(args, " "), "-gcflags") {
		t.Errorf("got %q", args)
	}
}

func TestFindDebugger(t *testing.T) {
	own := fakeDelve(t, "")
	t.Setenv("PATH", filepath.Dir(own))
	if got, err := FindDebugger(t.Context(), t.TempDir(), nil, nil); err != nil || got != own {
		t.Errorf("the user's own: got %s, %v", got, err)
	}
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	installed := filepath.Join(dir, "delve-"+delveVersion, "dlv")
	write(t, dir, map[string]string{"delve-" + delveVersion + "/dlv": "x"})
	if got, err := FindDebugger(t.Context(), dir, nil, nil); err != nil || got != installed {
		t.Errorf("an installed one: got %s, %v", got, err)
	}
	var progress []string
	if _, err := FindDebugger(t.Context(), t.TempDir(), nil, func(text string) { progress = append(progress, text) }); err == nil || len(progress) != 1 {
		t.Errorf("without Go: got %v, told %q", err, progress)
	}
}

// TestDelveVersion compares the Delve that users get with the one that the tests use.
func TestDelveVersion(t *testing.T) {
	tools, err := os.ReadFile("../../tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/go-delve/delve " + delveVersion + " "; !strings.Contains(string(tools), want) {
		t.Errorf("tools/go.mod does not require %s", want)
	}
}

// TestRealDebugger lets Delve attach to a program twice. Package test/dev tests what an editor makes of it.
func TestRealDebugger(t *testing.T) {
	delve := testenv.Delve(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.com/tiny\n\ngo 1.26\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\t\"os/signal\"\n\t\"syscall\"\n)\n\nfunc main() {\n\tc := make(chan os.Signal, 1)\n\tsignal.Notify(c, syscall.SIGTERM)\n" +
			"\tprintln(\"up\")\n\t<-c\n\tprintln(\"down\")\n}\n",
	})
	b := &builder{dir: dir, module: "example.com/tiny", main: ".", output: filepath.Join(t.TempDir(), "tiny"), env: os.Environ(), BuildOptions: BuildOptions{Debug: true}}
	if _, err := b.build(t.Context()); err != nil {
		t.Fatal(err)
	}
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // as after a restart, on the same port
		p, err := startProcess(processSpec{binary: b.output, dir: dir, env: os.Environ(), line: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.stop(0) })
		d, err := attachDebugger(t.Context(), delve, p, b.output, port, os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		d.stop()
		if killed := p.stop(10 * time.Second); killed || !slices.Contains(p.tail(), "down") {
			t.Errorf("it did not end in order: killed %t, %q", killed, p.tail())
		}
	}
}
