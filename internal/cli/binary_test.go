// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/cluster"
)

func TestAssetsPrintsOnlyThePath(t *testing.T) {
	for name, dock := range map[string]*fakeDock{
		"binary there": {binary: "/cache/opdock-controlplane"},
		"binary to be built": {build: func(_ context.Context, _ string, progress func(cluster.BuildProgress)) error {
			progress(cluster.BuildProgress{Done: 1, Total: 2, Elapsed: time.Second})
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(dock)
			code, _ := s.run(t.Context(), "assets")
			expectCode(t, code, exitOK)
			if got, want := s.out.String(), "/cache/assets\n"; got != want {
				t.Errorf("got %q on standard output, want %q", got, want)
			}
			if building := strings.Contains(s.err.String(), "1 of 2 packages"); building != (dock.binary == "") {
				t.Errorf("got on standard error: %s", s.err)
			}
		})
	}
}

func TestFindingTheBinaryFails(t *testing.T) {
	s := newConsole(nil)
	s.Dock.FindBinary = func() (string, error) { return "", errors.New("OPDOCK_CONTROLPLANE names a folder") }
	code, _ := s.run(t.Context(), "assets")
	expectCode(t, code, exitError)
	if got, want := s.err.String(), "opdock: OPDOCK_CONTROLPLANE names a folder\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBuildControlPlane(t *testing.T) {
	var built string
	s := newConsole(&fakeDock{binary: "/elsewhere", build: func(_ context.Context, out string, _ func(cluster.BuildProgress)) error {
		built = out
		return nil
	}})
	code, _ := s.run(t.Context(), "build-controlplane", "--output", "bin/opdock-controlplane")
	expectCode(t, code, exitOK)
	if want := "bin/opdock-controlplane"; built != want {
		t.Errorf("built %q, want %q", built, want)
	}
}

func TestVersion(t *testing.T) {
	for name, binary := range map[string]string{"built": "/bin/opdock-controlplane", "not built yet": ""} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(&fakeDock{binary: binary})
			code, _ := s.run(t.Context(), "version", "-o", "json")
			expectCode(t, code, exitOK)
			var report versionReport
			if err := json.Unmarshal(s.out.Bytes(), &report); err != nil {
				t.Fatal(err)
			}
			if report.Version == "" || report.Go == "" || report.Platform == "" {
				t.Errorf("something is missing: %+v", report)
			}
			if report.Binary != binary || (report.ControlPlane != nil) != (binary != "") {
				t.Errorf("wrong about the control plane: %+v", report)
			}

			s = newConsole(&fakeDock{binary: binary})
			code, _ = s.run(t.Context(), "version")
			expectCode(t, code, exitOK)
			want := "not built yet (opdock up builds it)"
			if binary != "" {
				want = "Kubernetes v1.36.3, etcd 3.6.8, kwok v0.8.0"
			}
			if got := s.out.String(); !strings.Contains(got, want) {
				t.Errorf("got %q, want it to contain %q", got, want)
			}
		})
	}
}
