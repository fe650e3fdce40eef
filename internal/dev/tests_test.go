// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/project"
)

func TestFailuresOfTests(t *testing.T) {
	const output = "ok  \texample.com/a\t0.1s\n?   \texample.com/b\t[no test files]\n--- FAIL: TestC (0.00s)\n    c_test.go:3: got 1\nFAIL\n" + "FAIL\texample.com/c\t0.2s\nFAIL\n"
	if got := failuresIn(output); !slices.Equal(got, []string{"--- FAIL: TestC (0.00s)", "    c_test.go:3: got 1", "FAIL\texample.com/c\t0.2s"}) {
		t.Errorf("got %q", got)
	}
	if got := failuresIn(strings.Repeat("x\n", mostFailures+2)); len(got) != mostFailures+1 || got[mostFailures] != "… and 2 more lines" {
		t.Errorf("got %q", got)
	}
}

func TestKeyForTests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.com/tiny\n\ngo 1.26\n", "tiny.go": "package tiny\n",
		"tiny_test.go": "package tiny\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestAssets(t *testing.T) {\n\tif os.Getenv(\"KUBEBUILDER_ASSETS\") != \"/assets\" {\n\t\tt.Fatal(\"no assets\")\n\t}\n}\n",
	})
	screen := &said{}
	s := &Session{Options: Options{
		Project: &project.Project{Dir: dir}, StateDir: t.TempDir(), Screen: screen, Env: append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "KUBEBUILDER_ASSETS="),
		Assets: func(context.Context) (string, error) { return "/assets", nil },
	}}
	s.runTests(t.Context())
	s.runTests(t.Context())
	if want := []string{"running the tests: go test ./...", "the tests are still running"}; !slices.Equal(screen.texts, want) {
		t.Errorf("it said %q", screen.texts)
	}
	if got := <-s.tests.finished; !strings.HasPrefix(got, "✓ the tests passed in ") {
		t.Errorf("got %s", got)
	}
	s.tests, s.Assets = nil, nil
	if got := s.test(t.Context()); !strings.Contains(got, "✗ the tests failed") || !strings.Contains(got, "tiny_test.go:10: no assets") {
		t.Errorf("got %s", got)
	}
	s.runTests(t.Context())
	s.endTests()
	if s.tests != nil {
		t.Error("they go on")
	}
}
