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
	compare(t, "../../go.mod", map[string]string{
		"../../scaffold/templates/modules/go.mod.txt": "go test ./scaffold -run TestUpdateModules -update",
		"../charts/go.mod":                            "go -C test/charts get MODULE@VERSION",
		"../browser/go.mod":                           "go -C test/browser get MODULE@VERSION",
	})
}

// TestConformanceIsOfTheControlPlane keeps upstream's specs at the version of the server that they test, and their build
// cheap: most of what they are made of is compiled for the control plane already.
func TestConformanceIsOfTheControlPlane(t *testing.T) {
	compare(t, "../../controlplane/go.mod", map[string]string{
		"../conformance/upstream/go.mod": "go -C test/conformance/upstream get MODULE@VERSION",
	})
}

// compare compares the modules of a go.mod file with those of others. The values say how a difference is put right.
func compare(t *testing.T, reference string, others map[string]string) {
	t.Helper()
	ours := testenv.Requirements(t, reference)
	for name, remedy := range others {
		shared := 0
		for module, version := range testenv.Requirements(t, name) {
			want, there := ours[module]
			if !there {
				continue
			}
			shared++
			if version != want {
				t.Errorf("%s requires %s %s, and %s %s: run %s", name, module, version, reference, want, remedy)
			}
		}
		if shared == 0 {
			t.Errorf("%s has no requirement in common with %s, so nothing was compared", name, reference)
		}
	}
}
