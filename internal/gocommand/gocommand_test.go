// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package gocommand

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lines"
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

// A canceled go command ends together with the program that it runs, which would otherwise keep the output open.
func TestCancelEndsWhatGoStarted(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module example.com/sleep\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"time\"\n)\n\nfunc main() {\n\tfmt.Println(\"running\")\n\ttime.Sleep(time.Hour)\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := Command(ctx, dir, nil, "run", ".")
	output := lines.NewWriter(func(string) { cancel() })
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	began := time.Now()
	if err := command.Wait(); err == nil {
		t.Error("a canceled command succeeds")
	}
	if took := time.Since(began); took > grace/2 {
		t.Errorf("it took %v to end", took)
	}
}
