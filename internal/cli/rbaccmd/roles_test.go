// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/testenv"
)

// TestWriteLeavesMarkersOfOtherPrograms has a second program in the module, with a role of its own that grants what the operator
// lacks.
func TestWriteLeavesMarkersOfOtherPrograms(t *testing.T) {
	const (
		file      = "internal/raft/raft.go"
		ofTheRaft = `package raft

// +kubebuilder:rbac:groups=sea.example.com,resources=frigates/finalizers,verbs=update,roleName=raft-role
// +kubebuilder:rbac:groups=sea.example.com,resources=rafts,verbs=get;list;watch,roleName=raft-role
`
	)
	files := maps.Clone(shipFiles)
	files[file] = ofTheRaft
	dir := testenv.Dir(t, files)
	recording := record(t, filepath.Join(dir, "sailing.jsonl"), "ship", sailing())
	for _, against := range []string{"role", "markers"} {
		s := newConsole(nil)
		s.Generate = generator(t, dir, false, nil)
		code, text := screen(t, s, dir, recording, "--dir", dir, "--write", "--against", against)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		const want = "! 2 markers for role raft-role do not count and stay as they are: the manifests do not bind that role to the account of the operator\n"
		if strings.Count(text, want) != 1 {
			t.Errorf("got\n%swant once\n%s", text, want)
		}
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != ofTheRaft {
			t.Errorf("the markers of the other program are now\n%s%v", got, err)
		}
		own, err := os.ReadFile(filepath.Join(dir, "internal/controller/frigate.go"))
		if err != nil || !strings.Contains(string(own), "groups=sea.example.com,resources=frigates/finalizers,verbs=update\n") {
			t.Errorf("the markers of the operator are now\n%s%v", own, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config/rbac/role.yaml"), []byte(files["config/rbac/role.yaml"]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
