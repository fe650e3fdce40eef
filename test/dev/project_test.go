// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/testenv"
)

// patience is how long a test waits for what has to happen, on a machine that compiles other things as well.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// project is a copy of one of the projects in testdata, and the opdock dev that runs in it.
type project struct {
	dir        string
	home       string
	kubeconfig string // of an administrator of the cluster
	env        []string

	command *exec.Cmd
	rounds  chan dev.Round
	ended   chan struct{} // closed when the program has ended and everything it wrote was read
	said    *testenv.Buffer
}

// newProject copies a project.
func newProject(t *testing.T, name string) *project {
	t.Helper()
	testenv.ControlPlane(t)
	p := &project{dir: testenv.Project(t, filepath.Join("..", ".."), name, filepath.Join("testdata", name)), home: t.TempDir(), said: &testenv.Buffer{}}
	p.kubeconfig = filepath.Join(p.home, "clusters", name, "kubeconfig")
	return p
}

// start runs opdock dev. The test stops it, or its end does.
func (p *project) start(t *testing.T, arguments ...string) {
	t.Helper()
	p.command = exec.Command(testenv.Program(t), append([]string{"dev", "-o", "json", "--dir", p.dir}, arguments...)...)
	p.command.Env = p.environment(t)
	p.command.Stderr = p.said
	output, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	p.rounds, p.ended = make(chan dev.Round, 100), make(chan struct{})
	go func() {
		defer close(p.ended)
		decoder := json.NewDecoder(output)
		for {
			var round dev.Round
			if err := decoder.Decode(&round); err != nil {
				_, _ = io.Copy(p.said, output)
				_ = p.command.Wait()
				return
			}
			p.rounds <- round
		}
	}()
	t.Cleanup(func() {
		p.stop(t, os.Interrupt)
		if t.Failed() {
			t.Logf("opdock dev said:\n%s\nthe operator's log:\n%s", p.said, p.log())
		}
	})
}

// environment is the one of opdock.
func (p *project) environment(t *testing.T) []string {
	t.Helper()
	// Where the user's is, also if the test changes HOME: what is compiled there is compiled once for all tests.
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return append(append(os.Environ(), "OPDOCK_HOME="+p.home, "OPDOCK_CLUSTER=", "KUBECONFIG=/nonexistent", "GOFLAGS=-mod=mod", "GOPROXY=off",
		"XDG_CACHE_HOME="+cache, "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE")), p.env...)
}

// goEnv is a setting that the tests themselves are built with: those caches know all dependencies.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	output, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// stop ends the program in order and returns its exit code.
func (p *project) stop(t *testing.T, signal os.Signal) int {
	t.Helper()
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.command.Process.Kill()
		t.Fatal("opdock dev does not end")
	}
	return p.command.ProcessState.ExitCode()
}

func (p *project) log() string {
	logs, _ := filepath.Glob(filepath.Join(p.home, "dev", "*", "operator.log"))
	var all strings.Builder
	for _, log := range logs {
		content, _ := os.ReadFile(log)
		all.Write(content)
	}
	return all.String()
}

// next returns the next round.
func (p *project) next(t *testing.T) dev.Round {
	t.Helper()
	select {
	case round := <-p.rounds:
		t.Log(round.Line())
		return round
	case <-p.ended:
		t.Fatal("opdock dev has ended")
	case <-time.After(patience):
		t.Fatal("there is no next round")
	}
	return dev.Round{}
}

// good returns the next round, which has to have gone well and done exactly these steps.
func (p *project) good(t *testing.T, steps ...string) dev.Round {
	t.Helper()
	round := p.next(t)
	if round.Problem != nil {
		t.Fatalf("%s: %q", round.Problem.Text, round.Problem.Lines)
	}
	var got []string
	for _, step := range round.Steps {
		got = append(got, step.Name)
	}
	if got = slices.Compact(got); !slices.Equal(got, steps) {
		t.Fatalf("it did %q, want %q", got, steps)
	}
	return round
}

// bad returns the next round, which has to have failed in this step.
func (p *project) bad(t *testing.T, step string) *dev.Problem {
	t.Helper()
	round := p.next(t)
	if round.Problem == nil || round.Problem.Step != step {
		t.Fatalf("it did not fail in %s: %+v", step, round.Problem)
	}
	return round.Problem
}

// edit replaces text in a file, like a user who saves it.
func (p *project) edit(t *testing.T, name string, beforeAndAfter ...string) {
	t.Helper()
	path := filepath.Join(p.dir, filepath.FromSlash(name))
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(beforeAndAfter); i += 2 {
		if !bytes.Contains(content, []byte(beforeAndAfter[i])) {
			t.Fatalf("%q is not in %s", beforeAndAfter[i], name)
		}
		content = bytes.ReplaceAll(content, []byte(beforeAndAfter[i]), []byte(beforeAndAfter[i+1]))
	}
	save(t, path, content)
}

// save replaces a file at once, as many editors do. A file that is written in place is empty for a moment, and on a busy machine
// that moment can be long enough for a round.
func save(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".tmp", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

// server is an administrator of the project's cluster.
func (p *project) server(t *testing.T) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = rest.NoWarnings{}
	server, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return server
}
