// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build compatibility

package instrument_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/mod/semver"
)

// TestVersions builds with old and new versions of controller-runtime. Each is compiled with the client libraries of its
// time, which takes minutes, so `make compatibility` runs it and not `make test`.
func TestVersions(t *testing.T) {
	for _, version := range []string{"v0.5.14", "v0.6.5", "v0.7.2", "v0.8.3", "v0.9.7", "v0.10.3", "v0.12.3", "v0.14.7", "v0.15.3", "v0.16.6", "v0.17.6", "v0.18.7", "v0.19.7", "v0.20.4", "v0.21.0", "v0.22.4", "v0.23.1", "v0.24.1"} {
		t.Run(version, func(t *testing.T) {
			main := "main.go.txt"
			if semver.Compare(version, "v0.7.0") < 0 {
				main = "nocontext.go.txt"
			}
			dir := newProject(t, main, "module example.com/operator\n\ngo 1.24.0\n\nrequire sigs.k8s.io/controller-runtime "+version+"\n", "")
			tidy := exec.CommandContext(t.Context(), "go", "mod", "tidy")
			tidy.Dir, tidy.Env = dir, append(os.Environ(), "GOWORK=", "GOFLAGS=")
			if output, err := tidy.CombinedOutput(); err != nil {
				t.Fatalf("go mod tidy: %v\n%s", err, output)
			}
			proveMarks(t, dir)
		})
	}
}
