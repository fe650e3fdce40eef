// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

func TestVersion(t *testing.T) {
	for name, binary := range map[string]string{"built": "/bin/opdock-controlplane", "not built yet": ""} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(&clitest.FakeDock{Binary: binary})
			code, _ := s.Screen(t.Context(), "version", "-o", "json")
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			var report versionReport
			if err := json.Unmarshal(s.OutText.Bytes(), &report); err != nil {
				t.Fatal(err)
			}
			if report.Version == "" || report.Go == "" || report.Platform == "" {
				t.Errorf("something is missing: %+v", report)
			}
			if report.Binary != binary || (report.ControlPlane != nil) != (binary != "") {
				t.Errorf("wrong about the control plane: %+v", report)
			}

			s = newConsole(&clitest.FakeDock{Binary: binary})
			code, _ = s.Screen(t.Context(), "version")
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			want := "not built yet (opdock up builds it)"
			if binary != "" {
				want = "Kubernetes v1.36.3, etcd 3.6.8, kwok v0.8.0"
			}
			if got := s.OutText.String(); !strings.Contains(got, want) {
				t.Errorf("got %q, want it to contain %q", got, want)
			}
		})
	}
}
