// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/testenv"
)

// patience is for whatever takes seconds on a quiet machine.
const patience = 5 * time.Minute

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// section is a part of the page that has command lines.
type section struct {
	title    string
	commands []string
}

func TestCommandLines(t *testing.T) {
	testenv.ControlPlane(t)
	sections := read(t, "../../docs/coming-from.md")
	if len(sections) != 5 {
		t.Fatalf("the page has %d sections with command lines instead of one for each document", len(sections))
	}
	programs := filepath.Dir(testenv.Program(t))
	for _, s := range sections {
		t.Run(s.title, func(t *testing.T) {
			u := &user{dir: t.TempDir(), environment: append(os.Environ(),
				"PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"), "OPDOCK_HOME="+t.TempDir())}
			u.downAtTheEnd(t)
			for _, command := range s.commands {
				u.types(t, command)
			}
			u.stops(t)
		})
	}
}

// read finds the command lines of a page.
func read(t *testing.T, path string) (sections []section) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var current section
	keep := func() {
		if len(current.commands) > 0 {
			sections = append(sections, current)
		}
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			keep()
			current = section{title: title}
		}
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			current.commands = append(current.commands, command)
		}
	}
	keep()
	return sections
}

// user types command lines into a shell, and leaves opdock dev running in another one.
type user struct {
	dir         string
	environment []string
	dev         *running
}

func (u *user) types(t *testing.T, command string) {
	t.Helper()
	if strings.HasPrefix(command, "opdock dev") {
		u.dev = u.leaves(t, command)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	where, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer where.Close()
	shell := exec.CommandContext(ctx, "bash", "-ec", command+"\npwd >"+where.Name())
	shell.Dir, shell.Env, shell.Stdout, shell.Stderr = u.dir, u.environment, &out, &out
	if err := shell.Run(); err != nil {
		t.Fatalf("$ %s\n%s%v%s", command, out.String(), err, u.dev.said())
	}
	dir, err := io.ReadAll(where)
	if err != nil {
		t.Fatal(err)
	}
	u.dir = strings.TrimSpace(string(dir))
}

// leaves starts a command that goes on, and returns once the operator reconciles.
func (u *user) leaves(t *testing.T, command string) *running {
	t.Helper()
	r := &running{reconciles: make(chan struct{}), ended: make(chan error, 1)}
	words := strings.Fields(command)
	r.process = exec.Command(filepath.Join(programsOf(u.environment), words[0]), words[1:]...) //nolint:noctx // it ends by a signal
	r.process.Dir, r.process.Env, r.process.WaitDelay = u.dir, u.environment, time.Second
	out, in := io.Pipe()
	r.process.Stdout, r.process.Stderr = in, in
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	go r.read(out)
	go func() {
		r.ended <- r.process.Wait()
		_ = in.Close()
	}()
	select {
	case <-r.reconciles:
	case err := <-r.ended:
		t.Fatalf("$ %s\nended early: %v%s", command, err, r.said())
	case <-time.After(patience):
		_ = r.process.Process.Kill()
		t.Fatalf("$ %s\nthe operator does not reconcile%s", command, r.said())
	}
	return r
}

// stops types Ctrl-C.
func (u *user) stops(t *testing.T) {
	t.Helper()
	if u.dev == nil {
		t.Fatal("the section has no operator that runs")
	}
	if err := u.dev.process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-u.dev.ended:
		u.dev = nil
	case <-time.After(patience):
		t.Fatalf("Ctrl-C does not end it%s", u.dev.said())
	}
}

// downAtTheEnd leaves nothing behind, whatever goes wrong.
func (u *user) downAtTheEnd(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if u.dev != nil {
			_ = u.dev.process.Process.Kill()
			<-u.dev.ended
		}
		for _, name := range []string{"kapp", "collector", "first-operator", "kube-operator", "robot"} {
			down := exec.Command(filepath.Join(programsOf(u.environment), "opdock"), "down", "--name", name) //nolint:noctx // the test's context is over
			down.Env = u.environment
			_ = down.Run()
		}
	})
}

func programsOf(environment []string) string {
	for i := len(environment) - 1; i >= 0; i-- {
		if path, ok := strings.CutPrefix(environment[i], "PATH="); ok {
			return filepath.SplitList(path)[0]
		}
	}
	return ""
}

// running is opdock dev.
type running struct {
	process    *exec.Cmd
	reconciles chan struct{}
	ended      chan error

	mutex sync.Mutex
	lines []string
}

func (r *running) read(out io.Reader) {
	tell := sync.OnceFunc(func() { close(r.reconciles) })
	for scanner := bufio.NewScanner(out); scanner.Scan(); {
		r.mutex.Lock()
		r.lines = append(r.lines, scanner.Text())
		r.mutex.Unlock()
		if strings.Contains(scanner.Text(), "· reconciling after") {
			tell()
		}
	}
}

// said is what it has printed, for messages.
func (r *running) said() string {
	if r == nil {
		return ""
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return "\nopdock dev:\n" + strings.Join(r.lines[max(0, len(r.lines)-40):], "\n")
}
