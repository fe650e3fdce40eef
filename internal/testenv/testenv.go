// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv holds helpers that the tests of many packages share: programs to run, and waiting for a condition.
package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	controlPlaneVariable = "OPDOCK_CONTROLPLANE"
	programVariable      = "OPDOCK_PROGRAM"
	delveVariable        = "OPDOCK_DELVE"

	noControlPlane = controlPlaneVariable + " does not name a control plane: run make test, or make build and " +
		"export " + controlPlaneVariable + "=$PWD/bin/opdock-controlplane"
)

// ControlPlane returns the path of the control plane's binary. Without one it skips the test, rather than compiling
// Kubernetes in the middle of a test run.
func ControlPlane(t testing.TB) string {
	t.Helper()
	binary := os.Getenv(controlPlaneVariable)
	if binary == "" {
		t.Skip(noControlPlane)
	}
	return binary
}

// Delve returns the path of the debugger: the one that OPDOCK_DELVE names, as in make test, or the user's own. Without one it
// skips the test.
func Delve(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(delveVariable); given != "" {
		return given
	}
	own, err := exec.LookPath("dlv")
	if err != nil {
		t.Skip("there is no debugger: run make test, or make bin/dlv and export " + delveVariable + "=$PWD/bin/dlv")
	}
	return own
}

// Main runs the tests of a package in which every test needs the control plane, and returns the exit code. Without a
// control plane go test shows "[no tests to run]" beside the package's name: it shows neither skipped tests nor anything
// that a package prints which does not fail, except for this one line.
func Main(m *testing.M) int {
	if os.Getenv(controlPlaneVariable) == "" {
		fmt.Println("testing: warning: no tests to run")
		fmt.Println(noControlPlane)
		return 0
	}
	defer RemoveProgram()
	return m.Run()
}

// Program returns the path of an opdock program, alone in its folder: there is no control plane beside it, where opdock
// would find it. It is the one that OPDOCK_PROGRAM names, as in make test, which spares each package linking one of its
// own; without that variable it is built. Main removes it.
func Program(t testing.TB) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var built string

var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "opdock-program-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "opdock")
	if given := os.Getenv(programVariable); given != "" {
		if err := place(given, path); err != nil {
			return "", fmt.Errorf("%s does not name an opdock that can be used: %w", programVariable, err)
		}
		return path, nil
	}
	// The tests may be those of a nested module, which lacks some of what opdock needs.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/opdock/opdock").Output()
	if err != nil {
		return "", fmt.Errorf("finding opdock's source: %w", err)
	}
	build := exec.Command("go", "-C", strings.TrimSpace(string(root)), "build", "-o", path, "./cmd/opdock")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building opdock: %w\n%s", err, output)
	}
	return path, nil
})

// place links a program to another folder, or copies it if that is on another file system.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o700)
}

// RemoveProgram is for packages that have a TestMain of their own and do not call Main.
func RemoveProgram() {
	if built != "" {
		_ = os.RemoveAll(built)
	}
}
