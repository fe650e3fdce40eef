// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Project copies directories to a new one, which becomes the Go module example.com/NAME. It uses the modules of this repository at
// the same versions, so with GOFLAGS=-mod=mod and GOPROXY=off it is built without a download. Root is the repository, from the
// directory of the test.
func Project(t testing.TB, root, name string, from ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), name)
	for _, one := range from {
		if err := os.CopyFS(dir, os.DirFS(one)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		content = regexp.MustCompile(`(?m)^module .*$`).ReplaceAll(content, []byte("module example.com/"+name))
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
