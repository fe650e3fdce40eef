// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercmd

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

func TestAssetsPrintsOnlyThePath(t *testing.T) {
	for name, dock := range map[string]*clitest.FakeDock{
		"binary there": {Binary: "/cache/opdock-controlplane"},
		"binary to be built": {Build: func(_ context.Context, _ string, progress func(cluster.BuildProgress)) error {
			progress(cluster.BuildProgress{Done: 1, Total: 2, Elapsed: time.Second})
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(dock)
			code, _ := s.Screen(t.Context(), "assets")
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			if got, want := s.OutText.String(), "/cache/assets\n"; got != want {
				t.Errorf("got %q on standard output, want %q", got, want)
			}
			if building := strings.Contains(s.ErrText.String(), "1 of 2 packages"); building != (dock.Binary == "") {
				t.Errorf("got on standard error: %s", s.ErrText)
			}
		})
	}
}

func TestFindingTheBinaryFails(t *testing.T) {
	s := newConsole(nil)
	s.Dock.FindBinary = func() (string, error) { return "", errors.New("OPDOCK_CONTROLPLANE names a folder") }
	code, _ := s.Screen(t.Context(), "assets")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	if got, want := s.ErrText.String(), "opdock: OPDOCK_CONTROLPLANE names a folder\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBuildControlPlane(t *testing.T) {
	var built string
	s := newConsole(&clitest.FakeDock{Binary: "/elsewhere", Build: func(_ context.Context, out string, _ func(cluster.BuildProgress)) error {
		built = out
		return nil
	}})
	code, _ := s.Screen(t.Context(), "build-controlplane", "--output", "bin/opdock-controlplane")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if want := "bin/opdock-controlplane"; built != want {
		t.Errorf("built %q, want %q", built, want)
	}
}

func TestAssetsChecksTheVersion(t *testing.T) {
	for version, code := range map[string]int{
		"": cmdutil.ExitOK, "1.35": cmdutil.ExitOK, "v1.36": cmdutil.ExitOK, "1.35.2": cmdutil.ExitOK,
		"1.20": cmdutil.ExitError, "bogus": cmdutil.ExitError,
	} {
		s := newConsole(&clitest.FakeDock{Binary: "/bin/opdock-controlplane"})
		s.Env = []string{kubernetesVariable + "=" + version}
		got, screen := s.Screen(t.Context(), "assets")
		if got != code || (code == cmdutil.ExitError) != strings.Contains(screen, "use one of 1.35, 1.36") {
			t.Errorf("%q: exit code %d, want %d:\n%s", version, got, code, screen)
		}
	}
}
