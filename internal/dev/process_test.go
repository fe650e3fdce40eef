// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

// shell runs a script as if it were an operator.
func shell(t *testing.T, script string) (p *process, lines func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	p, err := startProcess(processSpec{
		binary: "/bin/sh", args: []string{"-c", script}, dir: t.TempDir(), env: os.Environ(),
		line: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, line)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(0) })
	return p, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func awaitEnd(t *testing.T, p *process) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}

func TestProcessThatEndsByItself(t *testing.T) {
	for script, want := range map[string]string{
		"echo one; printf two >&2; exit 3": "exited with status 3",
		"echo one; printf two; exit 0":     "exited with status 0",
		"echo one; printf two; kill -9 $$": "was terminated by signal killed",
	} {
		p, lines := shell(t, script)
		awaitEnd(t, p)
		if got := p.how(); got != want {
			t.Errorf("%s: it %s", script, got)
		}
		if !p.crashed() {
			t.Errorf("%s: it was not asked to stop", script)
		}
		if got := lines(); !slices.Equal(got, []string{"one", "two"}) || !slices.Equal(p.tail(), got) {
			t.Errorf("%s: it wrote %q, and remembered is %q", script, got, p.tail())
		}
	}
}

func TestOnlyTheEndOfTheLogIsKept(t *testing.T) {
	p, lines := shell(t, "seq 100")
	awaitEnd(t, p)
	if tail := p.tail(); len(lines()) != 100 || len(tail) != lastLines || tail[lastLines-1] != "100" {
		t.Errorf("kept %q", p.tail())
	}
}

func TestStop(t *testing.T) {
	const forever = "while :; do sleep 0.02; done"
	for name, test := range map[string]struct {
		script string
		grace  time.Duration
		killed bool
	}{
		"in order":       {"trap 'exit 0' TERM; echo up; " + forever, patience, false},
		"by force":       {"trap '' TERM; echo up; " + forever, 50 * time.Millisecond, true},
		"with its child": {"trap 'exit 0' TERM; sleep 1000 & echo up; " + forever, patience, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, lines := shell(t, test.script)
			testenv.Eventually(t, "it is up", func() bool { return len(lines()) > 0 })
			if killed := p.stop(test.grace); killed != test.killed {
				t.Errorf("killed: %t", killed)
			}
			if p.running() || p.crashed() {
				t.Error("it was to end")
			}
			testenv.Eventually(t, "its group is gone", func() bool { return syscall.Kill(-p.cmd.Process.Pid, 0) != nil })
		})
	}
	if (*process)(nil).running() || (*process)(nil).crashed() {
		t.Error("there is no process")
	}
}

func TestAwaitReady(t *testing.T) {
	p, _ := shell(t, `echo 'Starting Controller {"controller": "a"}'; echo 'Starting workers {"controller": "a"}'; sleep 1000`)
	if got := p.awaitReady(t.Context(), ""); got != reconciling {
		t.Errorf("got %q", got)
	}
	p, lines := shell(t, `echo 'Starting workers {"controller": "a"}'; echo 'no matches for kind "Lamp" in version "other.io/v1"'; sleep 1000`)
	testenv.Eventually(t, "it wrote both", func() bool { return len(lines()) == 2 })
	if got := p.awaitReady(t.Context(), ""); got != lacking {
		t.Errorf("one controller runs, another one lacks a kind: got %q", got)
	}
	p, _ = shell(t, "exit 1")
	if got := p.awaitReady(t.Context(), ""); got != "" {
		t.Errorf("it has ended, and is said to be %s", got)
	}
	p, _ = shell(t, "sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := p.awaitReady(ctx, ""); got != "" {
		t.Errorf("the context has ended, and it is said to be %s", got)
	}
}

func TestAskHelp(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "operator")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	help, err := askHelp(t.Context(), script("cat >&2 <<'END'\n"+standardHelp+"END\nexit 2\n"), ".", os.Environ())
	if known := parseFlags(help); err != nil || !known["leader-elect"] || !known["kubeconfig"] {
		t.Errorf("got %v, %v", known, err)
	}
	// One that takes --help for nothing special must not find a cluster.
	help, err = askHelp(t.Context(), script("echo \"  -kubeconfig=$KUBECONFIG-\"\n"), ".", append(os.Environ(), "KUBECONFIG=/real"))
	if known := parseFlags(help); err != nil || len(known) != 1 {
		t.Errorf("got %v, %v", known, err)
	}
	if _, err := askHelp(t.Context(), "/nonexistent/operator", ".", nil); err == nil {
		t.Error("there is no such program")
	}
}

func TestBuild(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no Go")
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() { println(1) }\n"})
	var progress []string
	b := &builder{
		dir: dir, main: ".", output: filepath.Join(t.TempDir(), "bin", "tiny"), env: os.Environ(),
		progress: func(text string) { progress = append(progress, text) },
	}
	build := func(want bool) {
		t.Helper()
		changed, err := b.build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if changed != want {
			t.Errorf("changed: %t", changed)
		}
	}
	build(true)
	if len(progress) == 0 || !strings.HasPrefix(progress[0], "building, 1 package compiled") {
		t.Errorf("it was told %q", progress)
	}
	build(false)
	write(t, dir, map[string]string{"main.go": "package main\n\nfunc main() { println(nothing) }\n"})
	_, err := b.build(t.Context())
	if broken, ok := err.(*buildError); !ok || !slices.Equal(broken.lines(), []string{"main.go:3:23: undefined: nothing"}) { //nolint:errorlint // it is not wrapped
		t.Errorf("got %v", err)
	}
	if out, err := exec.Command(b.output).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "1" {
		t.Errorf("the binary from before is gone: %s, %v", out, err)
	}
	write(t, dir, map[string]string{"main.go": "package main\n\nfunc main() { println(2) }\n"})
	build(true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.build(ctx); err == nil {
		t.Error("a cancelled build has succeeded")
	}
}

func TestProgressOfGoBuild(t *testing.T) {
	var progress []string
	o := &buildOutput{progress: func(text string) { progress = append(progress, text) }}
	for _, line := range []string{
		"go: downloading k8s.io/api v0.37.2", "internal/goarch", "k8s.io/client-go/util/workqueue", "# example.com/ship/internal",
		"internal/ships.go:3:4: undefined: x", "\thave (int)", "go: updates to go.mod needed",
	} {
		o.read(line)
	}
	if want := []string{"downloading k8s.io/api v0.37.2", "building, 1 package compiled", "building, 2 packages compiled"}; !slices.Equal(progress, want) {
		t.Errorf("it was told %q", progress)
	}
	if want := []string{"# example.com/ship/internal", "internal/ships.go:3:4: undefined: x", "\thave (int)", "go: updates to go.mod needed"}; !slices.Equal(o.said, want) {
		t.Errorf("what is wrong is %q", o.said)
	}
}
