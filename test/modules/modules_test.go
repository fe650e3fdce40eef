// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modules compares the versions of the modules that are built together with this repository.
package modules

import (
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// TestVersionsAreOurs keeps the versions of new projects and of the nested test modules equal to those of this repository,
// which are the tested ones. It also keeps builds cheap: a module whose dependencies differ in one place, such as
// protobuf, shares no compiled package with opdock, and compiles Kubernetes' client libraries again.
//
// The control plane and the tools are not listed: their versions differ on purpose.
func TestVersionsAreOurs(t *testing.T) {
	ours := testenv.Requirements(t, "../../go.mod")
	for name, remedy := range map[string]string{
		"../../scaffold/templates/modules/go.mod.txt": "go test ./scaffold -run TestUpdateModules -update",
		"../charts/go.mod":                            "go -C test/charts get MODULE@VERSION",
		"../browser/go.mod":                           "go -C test/browser get MODULE@VERSION",
	} {
		shared := 0
		for module, version := range testenv.Requirements(t, name) {
			want, there := ours[module]
			if !there {
				continue
			}
			shared++
			if version != want {
				t.Errorf("%s requires %s %s, and this repository %s: run %s", name, module, version, want, remedy)
			}
		}
		if shared == 0 {
			t.Errorf("%s has no requirement in common with this repository, so nothing was compared", name)
		}
	}
}
