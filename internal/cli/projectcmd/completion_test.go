// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
)

func TestKindsAreCompleted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "PROJECT", `version: "3"
domain: example.com
layout: [go.kubebuilder.io/v4]
projectName: fleet
repo: example.com/fleet
resources:
- {api: {crdVersion: v1}, domain: example.com, group: sea, kind: Frigate, version: v1}
- {api: {crdVersion: v1}, domain: example.com, group: sea, kind: Frigate, version: v2}
- {api: {crdVersion: v1}, domain: example.com, group: land, kind: Cart, version: v1}
`)
	for args, want := range map[string]string{
		"delete api --dir " + dir + " --kind ":                       "Frigate\nCart\n:4\n",
		"delete api --dir " + dir + " --group land --kind ":          "Cart\n:4\n",
		"create webhook --dir " + dir + " --kind ":                   "Frigate\nCart\n:4\n",
		"create webhook --dir " + dir + " --kind Frigate --version ": "v1\nv2\n:4\n",
		"create api --dir " + dir + " --group ":                      "sea\nland\n:4\n",
		"delete webhook --dir " + dir + " --api-version ":            "sea.example.com/v1\nsea.example.com/v2\nland.example.com/v1\n:4\n",
		"delete api --dir " + t.TempDir() + " --kind ":               ":4\n",
	} {
		s := newConsole(&clitest.FakeDock{})
		s.Screen(t.Context(), append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if got := s.OutText.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q first", args, got, want)
		}
	}
}
