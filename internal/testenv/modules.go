// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"testing"

	"golang.org/x/mod/modfile"
)

// Requirements returns the versions of the modules that a go.mod requires.
func Requirements(t testing.TB, name string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(name, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, one := range parsed.Require {
		versions[one.Mod.Path] = one.Mod.Version
	}
	return versions
}
