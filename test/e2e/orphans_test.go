// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// These tests kill a test process that has started a control plane, so that it cannot stop it. Nothing may be left.

// killed starts a test binary, waits until one of its tests has passed, kills it and waits for the end of the
// processes it had started.
func killed(t *testing.T, command *exec.Cmd, wantChildren int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the children of a process as files")
	}
	// Its tests go on and on: far more often than they get to.
	command.Args = append(command.Args, "-test.count=100000", "-test.failfast", "-test.v")
	said := must(command.StdoutPipe())(t)
	try(t, command.Start())
	(&output{lines: bufio.NewScanner(said)}).await(t, "--- PASS")
	children := childrenOf(t, command.Process.Pid)
	if len(children) != wantChildren {
		t.Errorf("it has the children %v, not %d", children, wantChildren)
	}
	try(t, command.Process.Kill())
	_ = command.Wait() // says that it was killed
	testenv.Eventually(t, "its children have ended", func() error {
		for pid, name := range children {
			// Dead processes remain as zombies until their parent waits for them.
			if now, found := readProcess(fmt.Sprintf("/proc/%d/stat", pid)); found && now.state != "Z" {
				return fmt.Errorf("%s (pid %d) has not", name, pid)
			}
		}
		return nil
	})
}

func TestKilledEnvtestLeavesNothing(t *testing.T) {
	for name, setting := range map[string]string{"alone": "OPDOCK_CONTROLLERS=", "with-controllers": "OPDOCK_CONTROLLERS=1"} {
		t.Run(name, func(t *testing.T) {
			command := envtestSuite(t, "-test.run=Reconciler")
			command.Env = append(command.Env, setting)
			killed(t, command, 2) // etcd and kube-apiserver
		})
	}
}

// TestKilledTestLeavesNothing runs this very test binary, with the control plane that its tests share.
func TestKilledTestLeavesNothing(t *testing.T) {
	testenv.ControlPlane(t)
	t.Parallel()
	temporary := t.TempDir()
	command := exec.CommandContext(within(t), must(os.Executable())(t), "-test.run=^TestHealth$")
	command.Env = append(os.Environ(), "TMPDIR="+temporary, "XDG_CACHE_HOME="+t.TempDir())
	killed(t, command, 1)
	testenv.Eventually(t, "the state is removed", func() error {
		left := must(filepath.Glob(filepath.Join(temporary, "opdock-*", "state.json")))(t)
		return expect("number of state folders", len(left), 0)
	})
}

type process struct {
	pid, parent int
	name, state string
}

// readProcess reads a file like /proc/1/stat: pid (name) state parent …, where the name may contain anything.
func readProcess(path string) (process, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return process{}, false // has ended
	}
	begin, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	p := process{name: string(data[begin+1 : end])}
	rest := strings.Fields(string(data[end+1:]))
	p.state = rest[0]
	p.pid, _ = strconv.Atoi(strings.TrimSpace(string(data[:begin])))
	p.parent, _ = strconv.Atoi(rest[1])
	return p, true
}

// childrenOf returns the names of the processes that a process has started.
func childrenOf(t *testing.T, parent int) map[int]string {
	t.Helper()
	children := map[int]string{}
	for _, path := range must(filepath.Glob("/proc/[0-9]*/stat"))(t) {
		if p, found := readProcess(path); found && p.parent == parent {
			children[p.pid] = p.name
		}
	}
	return children
}
