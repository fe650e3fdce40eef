// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestEventually(t *testing.T) {
	calls := 0
	third := func() bool { calls++; return calls%3 == 0 }
	Eventually(t, "a condition", third)
	Eventually(t, "an error", func() error {
		if !third() {
			return errors.New("not yet")
		}
		return nil
	})
	Eventually(t, "an error, with a context", func(ctx context.Context) error {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("the context never ends")
		}
		if !third() {
			return errors.New("not yet")
		}
		return nil
	})
	if calls != 9 {
		t.Errorf("%d calls", calls)
	}
}

func TestEventuallyGivesUp(t *testing.T) {
	never := errors.New("never")
	if err := await(t.Context(), time.Millisecond, func(context.Context) error { return never }); !errors.Is(err, never) {
		t.Errorf("got %v", err)
	}
}

// TestMain plays a package that needs the control plane if it is told so.
func TestMain(m *testing.M) {
	if os.Getenv("TESTENV_PLAYS") != "" {
		os.Exit(Main(m))
	}
	os.Exit(m.Run())
}

// TestSkippedPackagesAreShown sees that go test says that nothing was run, which it does beside the name of the package.
func TestSkippedPackagesAreShown(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go test")
	}
	command := exec.Command("go", "test", "-vet=off", "-count=1", "-run=TestEventually$", ".")
	command.Env = append(os.Environ(), controlPlaneVariable+"=", "TESTENV_PLAYS=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if first, _, _ := strings.Cut(string(out), "\n"); !strings.Contains(first, "/testenv\t") || !strings.Contains(first, "[no tests to run]") {
		t.Errorf("go test says:\n%s", out)
	}
}
