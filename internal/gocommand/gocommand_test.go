// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package gocommand

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/opdock/opdock/internal/lines"
	"github.com/opdock/opdock/internal/testenv"
)

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	output, err := Command(t.Context(), dir, nil, "env", "GOMOD").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "/dev/null" {
		t.Errorf("in a directory without a module: %q, %v", output, err)
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := Find(); !IsMissing(err) {
		t.Errorf("Find: %v", err)
	}
	if err := Command(t.Context(), "", nil, "version").Run(); !IsMissing(err) {
		t.Errorf("Command: %v", err)
	}
}

// A canceled go command ends together with the program that it runs, which would otherwise keep the output open. The program
// does nothing until it is ended.
func TestCancelEndsWhatGoStarted(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module example.com/sleep\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"time\"\n)\n\nfunc main() {\n\tfmt.Println(os.Getpid())\n\ttime.Sleep(time.Hour)\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := Command(ctx, dir, nil, "run", ".")
	said := make(chan string, 1)
	output := lines.NewWriter(func(line string) {
		select {
		case said <- line:
			cancel()
		default:
		}
	})
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line := <-said
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("the program says %q", line)
	}
	t.Cleanup(func() {
		if t.Failed() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it is still there
		}
	})
	if err := command.Wait(); err == nil {
		t.Error("a canceled command succeeds")
	}
	testenv.Eventually(t, "the program has ended", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}
