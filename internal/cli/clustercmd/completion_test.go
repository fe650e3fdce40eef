// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
)

// kubectl completes its own command line, for the cluster that is meant.
func TestKubectlIsCompleted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "controlplane")
	script := "#!/bin/sh\necho \"$*\"\necho \"$KUBECONFIG\"\necho :36\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive, clitest.Dead), Binary: program})
	s.Screen(t.Context(), "__complete", "kubectl", "--name", "dock", "get", "po")
	lines := strings.Split(s.OutText.String(), "\n")
	if len(lines) < 3 || lines[0] != "__complete get po" || !strings.Contains(lines[1], "dock") || lines[2] != ":36" {
		t.Errorf("got %q", lines)
	}
}

func TestKubectlNameIsCompleted(t *testing.T) {
	s := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive, clitest.Dead)})
	s.Screen(t.Context(), "__complete", "kubectl", "--name", "")
	if got := s.OutText.String(); got != "dock\nlost\n:4\n" {
		t.Errorf("got %q", got)
	}
}

func TestReadCompletions(t *testing.T) {
	for answer, want := range map[string]int{"pods\tpo\nnodes\n:4\n": 2, ":4\n": 0, "": 0, "it rained\n": 0} {
		if got, _ := readCompletions(answer); len(got) != want {
			t.Errorf("%q: got %q", answer, got)
		}
	}
}
