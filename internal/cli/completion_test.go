// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		s := newConsole(&fakeDock{})
		s.run(t.Context(), append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if got := s.out.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q first", args, got, want)
		}
	}
}

// kubectl completes its own command line, for the cluster that is meant.
func TestKubectlIsCompleted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "controlplane")
	script := "#!/bin/sh\necho \"$*\"\necho \"$KUBECONFIG\"\necho :36\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newConsole(&fakeDock{clusters: clusters(alive, dead), binary: program})
	s.run(t.Context(), "__complete", "kubectl", "--name", "dock", "get", "po")
	lines := strings.Split(s.out.String(), "\n")
	if len(lines) < 3 || lines[0] != "__complete get po" || !strings.Contains(lines[1], "dock") || lines[2] != ":36" {
		t.Errorf("got %q", lines)
	}
}

func TestReadCompletions(t *testing.T) {
	for answer, want := range map[string]int{"pods\tpo\nnodes\n:4\n": 2, ":4\n": 0, "": 0, "it rained\n": 0} {
		if got, _ := readCompletions(answer); len(got) != want {
			t.Errorf("%q: got %q", answer, got)
		}
	}
}
