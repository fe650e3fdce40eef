// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// checkoutAt makes a working copy with nothing in it but what is looked at.
func checkoutAt(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for file, content := range map[string]string{
		"go.mod":                    "// comment\nmodule github.com/opdock/opdock\n\ngo 1.26.0\n",
		"controlplane/go.mod":       "module \"github.com/opdock/opdock/controlplane\"\n",
		"controlplane/main.go":      "package main\n",
		"controlplane/deep/a/b.txt": "",
	} {
		path := filepath.Join(root, file)
		testenv.WriteFile(t, path, content)
	}
	return root
}

func TestBuiltBinaryFollowsSource(t *testing.T) {
	isolate(t)
	log := useFakeGo(t, "")
	root := checkoutAt(t)
	t.Chdir(root)
	ensure := func(wantCalls int, why string) {
		t.Helper()
		path, err := EnsureBinary(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := FindBinary(); found != path || err != nil {
			t.Errorf("%s: FindBinary says %s, %v", why, found, err)
		}
		if got := calls(t, log); len(got) != wantCalls {
			t.Errorf("%s: %d calls, want %d", why, len(got), wantCalls)
		}
	}
	write := func(file string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "controlplane", file), []byte("changed"), mode); err != nil {
			t.Fatal(err)
		}
	}
	ensure(2, "first")
	ensure(2, "unchanged")
	write("main_test.go", 0o600)
	write("opdock-controlplane", 0o700)
	ensure(2, "only a test and a binary changed")
	write("main.go", 0o600)
	ensure(4, "source changed")
}

func TestChooseSource(t *testing.T) {
	cases := []struct {
		version     string
		workingCopy bool
		checkout    string // that could be found
		want        string
	}{
		{"v0.3.0", false, "/src", "v0.3.0"},
		{"v0.3.0", true, "/src", "/src"},
		{"v0.3.0", true, "", "v0.3.0"},
		{"v1.0.0-rc.1", false, "", "v1.0.0-rc.1"},
		{"(devel)", false, "/src", "/src"},
		{"", false, "/src", "/src"},
		{"v0.3.1-0.20260102030405-abcdef012345", false, "/src", "/src"},
		{"v0.3.1-0.20260102030405-abcdef012345", false, "", "abcdef012345"},
		{"v0.0.0-20260102030405-abcdef012345", true, "", "abcdef012345"},
		{"v0.3.0+dirty", true, "/src", "/src"},
		{"v0.3.0+dirty", true, "", ""},
		{"(devel)", true, "", ""},
		{"(unknown)", false, "", ""},
	}
	for _, c := range cases {
		got, err := chooseSource(provenance{c.version, c.workingCopy}, func() string { return c.checkout })
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), binaryEnv) {
				t.Errorf("%s without a working copy: %v, %v", c.version, got, err)
			}
			continue
		}
		if err != nil || got.checkout+got.version != c.want {
			t.Errorf("%+v: got %+v, %v", c, got, err)
		}
	}
}

func TestProvenance(t *testing.T) {
	fromGit := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}}
	released := &debug.Module{Path: modulePath, Version: "v0.3.0"}
	replaced := &debug.Module{Path: modulePath, Version: "v0.3.0", Replace: &debug.Module{Path: "../x"}}
	cases := map[string]struct {
		info debug.BuildInfo
		want provenance
	}{
		"go run":     {debug.BuildInfo{Main: debug.Module{Path: modulePath, Version: "(devel)"}}, provenance{"(devel)", false}},
		"go build":   {debug.BuildInfo{Main: *released, Settings: fromGit}, provenance{"v0.3.0", true}},
		"go install": {debug.BuildInfo{Main: *released}, provenance{"v0.3.0", false}},
		// The repository is that of the program, not of its dependency.
		"dependency": {debug.BuildInfo{Deps: []*debug.Module{{Path: "other"}, released}, Settings: fromGit}, provenance{"v0.3.0", false}},
		"replaced":   {debug.BuildInfo{Deps: []*debug.Module{replaced}}, provenance{"(devel)", true}},
		"neither":    {debug.BuildInfo{}, provenance{"(unknown)", false}},
	}
	for name, c := range cases {
		if got := provenanceIn(&c.info); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// The binary says which Kubernetes it is by this constant, so it must be the one that is compiled in.
func TestKubernetesVersionIsTheControlPlanes(t *testing.T) {
	gomod, err := os.ReadFile(filepath.Join("..", "controlplane", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`).FindSubmatch(gomod)
	if found == nil || string(found[1]) != KubernetesVersion {
		t.Errorf("controlplane/go.mod requires %q, KubernetesVersion is %s", found, KubernetesVersion)
	}
}
