// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCommentsAreReadWithoutImports has a controller with imports that are not downloaded yet.
func TestCommentsAreReadWithoutImports(t *testing.T) {
	r := newRunner(t, plain().with("controller/controller.go",
		"package controller\n\nimport \"example.com/not/required\"\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\n\nvar _ = required.Name\n"))
	expect(t, "missing", changes(r.run(), Missing), []string{copyV1, copyV2, "config/rbac/role.yaml"})
}

// TestCommentsOfFilesThatAreLeftOut has files for other systems and tags, whose comments do not count.
func TestCommentsOfFilesThatAreLeftOut(t *testing.T) {
	t.Setenv("GOOS", "linux")
	t.Setenv("GOFLAGS", "")
	const marker = "\n\n// +kubebuilder:rbac:groups=apps,verbs=get,resources="
	for name, test := range map[string]struct{ file, source, want string }{
		"always":            {"all.go", "package controller" + marker + "always\n", "always"},
		"on this system":    {"all_linux.go", "package controller" + marker + "here\n", "here"},
		"on another system": {"all_windows.go", "package controller" + marker + "there\n", ""},
		"with a tag":        {"all.go", "//go:build special\n\npackage controller" + marker + "special\n", ""},
		"without a tag":     {"all.go", "//go:build !special\n\npackage controller" + marker + "usual\n", "usual"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, plain().with("controller/"+test.file, test.source).with("controller/one.go", "package controller"+marker+"one\n"))
			r.run()
			role, err := os.ReadFile(r.path("config/rbac/role.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(role)) {
				if resource, found := strings.CutPrefix(line, "  - "); found && strings.TrimSpace(resource) != "get" && strings.TrimSpace(resource) != "apps" {
					got = append(got, strings.TrimSpace(resource))
				}
			}
			want := []string{"one"}
			if test.want != "" {
				want = []string{test.want, "one"}
				slices.Sort(want)
			}
			expect(t, "resources", got, want)
		})
	}
}

// TestPackagesThatAreLeftOut has folders with markers for each tool in which no file is compiled.
func TestPackagesThatAreLeftOut(t *testing.T) {
	const special = "//go:build special\n\n"
	r := newRunner(t, plain().
		with("comments/c.go", special+"package comments\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\n").
		with("object/o.go", special+"// +kubebuilder:object:generate=true\n// +groupName=a.b\npackage object\n\ntype T struct{ A []string }\n").
		with("copies/v1/c.go", special+"// +k8s:deepcopy-gen=package\n// +k8s:defaulter-gen=TypeMeta\npackage v1\n\ntype T struct{ A []string }\n"))
	expect(t, "missing", changes(r.run(), Missing), []string{copyV1, copyV2})
}

// TestTypesBesideC has a package for controller-gen that uses cgo, which leaves its types as they are.
func TestTypesBesideC(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1")
	r := newRunner(t, plain().
		with("api/v2/number.go", "package v2\n\nimport \"C\"\n\ntype Numbers struct{ All []int }\n\nfunc number() C.int { return 1 }\n"))
	r.run()
	content, err := os.ReadFile(r.path(copyV2))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "func (in *Numbers) DeepCopy() *Numbers") {
		t.Errorf("the type beside the import of C has no deep copy:\n%s", content)
	}
}

func TestBuildID(t *testing.T) {
	for name, test := range map[string]struct{ start, want string }{
		"text":                {"\x7fELF...\xff Go build ID: \"a/b/c/d\"\n \xff...", "a/b/c/d"},
		"a note":              {"\x7fELF...\x04\x00\x00\x00\x07\x00\x00\x00\x04\x00\x00\x00Go\x00\x00a/b/c/d...", "a/b/c/d"},
		"a note that is cut":  {"\x7fELF...\x04\x00\x00\x00\xff\x00\x00\x00\x04\x00\x00\x00Go\x00\x00a/b/c/d", ""},
		"a note of others":    {"\x7fELF...\x04\x00\x00\x00\x07\x00\x00\x00\x03\x00\x00\x00GNU\x00a/b/c/d", ""},
		"text without an end": {"\xff Go build ID: \"a/b", ""},
		"none":                {"\x7fELF", ""},
	} {
		if got := buildID([]byte(test.start)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestTypesOfTheStandardLibrary has a field of a package that imports what the standard library vendors, under names that
// are not those of the packages.
func TestTypesOfTheStandardLibrary(t *testing.T) {
	r := newRunner(t, plain().with("api/v2/call.go", "package v2\n\nimport \"net/http\"\n\ntype Call struct{ Header http.Header }\n"))
	r.run()
	content, err := os.ReadFile(r.path(copyV2))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "= make(http.Header") {
		t.Errorf("the copy does not have the header:\n%s", content)
	}
}
