// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// TestInterruptedBuildLeavesNothing interrupts a go command that leaves its temporary files behind, as go does.
func TestInterruptedBuildLeavesNothing(t *testing.T) {
	tools, bin, begun := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "begun")
	goCommand := "#!/bin/sh\nmkdir \"$GOTMPDIR/go-build1\" && : >" + begun + "\nexec sleep 600\n"
	if err := os.WriteFile(filepath.Join(tools, "go"), []byte(goCommand), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	b := &builder{dir: testenv.Dir(t, map[string]string{"go.mod": "module example.com/tiny\n"}), module: "example.com/tiny", main: ".", output: filepath.Join(bin, "tiny"), env: os.Environ()}
	ended := make(chan error, 1)
	go func() {
		_, err := b.build(ctx)
		ended <- err
	}()
	testenv.Await(t, func() string {
		if _, err := os.Stat(begun); err != nil {
			return err.Error()
		}
		return ""
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the build ended with %v", err)
	}
	left, err := os.ReadDir(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range left {
		t.Errorf("it left %s", one.Name())
	}
}
