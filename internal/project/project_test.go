// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/testenv"
)

// fixture is a project of testdata.
func fixture(t *testing.T, name string) *Project {
	t.Helper()
	p, err := Find(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// write makes a project out of files.
func write(t *testing.T, files map[string]string) *Project {
	t.Helper()
	dir := t.TempDir()
	testenv.WriteFiles(t, dir, files)
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// names are the objects as a text that can be compared.
func names(objects []*unstructured.Unstructured) string {
	var all []string
	for _, object := range objects {
		name := object.GetKind() + " " + object.GetName()
		if object.GetNamespace() != "" {
			name = object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

func expectError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("there is no error about %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %q and does not say %q", err, part)
		}
	}
}

func TestWhatAProjectIs(t *testing.T) {
	for folder, expected := range map[string]struct {
		name, module, main string
		layout             Layout
	}{
		"single":         {"harbour", "example.com/harbour", "./cmd", KubebuilderV4},
		"single/api/v1":  {"harbour", "example.com/harbour", "./cmd", KubebuilderV4},
		"multigroup":     {"world", "example.com/world/v2", "./cmd", KubebuilderV4},
		"sdk":            {"ferry-operator", "example.com/Ferry_Operator", "./cmd/manager", OperatorSDK},
		"plain":          {"rowing", "example.com/rowing", ".", Plain},
		"plain/pkg/apis": {"rowing", "example.com/rowing", ".", Plain},
	} {
		p := fixture(t, folder)
		main, err := p.Main("")
		if err != nil {
			t.Errorf("%s: %v", folder, err)
		}
		if p.Name != expected.name || p.Module != expected.module || main != expected.main || p.Layout != expected.layout {
			t.Errorf("%s: %s, %s, %s, %s instead of %+v", folder, p.Name, p.Module, main, p.Layout, expected)
		}
		if !filepath.IsAbs(p.Dir) {
			t.Errorf("%s: the folder is %s", folder, p.Dir)
		}
	}
}

func TestLayoutsOfProjectFiles(t *testing.T) {
	for content, expected := range map[string]Layout{
		"version: \"2\"\ndomain: example.com\n":                                                  KubebuilderOlder,
		"version: \"3\"\nlayout: go.kubebuilder.io/v3\n":                                         KubebuilderOlder,
		"version: \"3\"\nlayout: [go.kubebuilder.io/v4]\n":                                       KubebuilderV4,
		"version: \"3\"\nlayout: [go.kubebuilder.io/v4, grafana.kubebuilder.io/v1]\n":            KubebuilderV4,
		"layout: [go.kubebuilder.io/v4]\nplugins: {manifests.sdk.operatorframework.io/v2: {}}\n": OperatorSDK,
	} {
		if p := write(t, map[string]string{"go.mod": "module example.com/a\n", "PROJECT": content}); p.Layout != expected {
			t.Errorf("%q is %s instead of %s", content, p.Layout, expected)
		}
	}
}

func TestNamesFromModules(t *testing.T) {
	for module, expected := range map[string]string{
		"example.com/fleet":         "fleet",
		"example.com/fleet/v3":      "fleet",
		"example.com/My_Fleet.Tool": "my-fleet-tool",
		"fleet":                     "fleet",
		"example.com/_":             "operator",
		"example.com/" + strings.Repeat("long-", 20): strings.TrimSuffix(strings.Repeat("long-", 20)[:63], "-"),
	} {
		if p := write(t, map[string]string{"go.mod": "module " + module + "\n"}); p.Name != expected {
			t.Errorf("%s is called %q instead of %q", module, p.Name, expected)
		}
	}
}

func TestNoProject(t *testing.T) {
	_, err := Find(t.TempDir())
	if !errors.As(err, new(*NotFoundError)) {
		t.Errorf("the error is %v", err)
	}
	_, err = Find(filepath.Join(t.TempDir(), "nowhere"))
	expectError(t, err, "nowhere")

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("go 1.26\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Find(dir)
	expectError(t, err, "go.mod:1: the module line is missing")

	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module a.b/c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "PROJECT"), []byte("a: 1\nb: [\nc: 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Find(dir)
	expectError(t, err, "PROJECT:")
}

func TestMains(t *testing.T) {
	const program, library = "package main\n\nfunc main() {}\n", "package library\n"
	two := map[string]string{
		"go.mod": "module example.com/a\n", "tools/one/main.go": program, "tools/two/two.go": program, "pkg/library.go": library,
		"tools/one/main_test.go": program, "hack/main.go": program, "vendor/b/main.go": program, "nested/go.mod": "module example.com/b\n",
		"nested/main.go": program, "tools/two/gen.go": "//go:build ignore\n\npackage other\n",
	}
	p := write(t, two)
	_, err := p.Main("")
	expectError(t, err, "2 main packages: ./tools/one, ./tools/two", "--main")
	if !errors.As(err, new(*AmbiguousMainError)) {
		t.Errorf("the error is a %T", err)
	}
	for chosen, expected := range map[string]string{
		"tools/two": "./tools/two", "./tools/two": "./tools/two", "./tools/two/two.go": "./tools/two", p.Dir + "/tools/one/": "./tools/one",
	} {
		if main, err := p.Main(chosen); err != nil || main != expected {
			t.Errorf("%s is %s, %v", chosen, main, err)
		}
	}
	for _, wrong := range []string{"pkg", "nowhere", "../elsewhere"} {
		_, err := p.Main(wrong)
		expectError(t, err, wrong, "./tools/one, ./tools/two")
	}

	p = write(t, map[string]string{"go.mod": "module example.com/a\n", "tools/one/main.go": program})
	if main, err := p.Main(""); err != nil || main != "./tools/one" {
		t.Errorf("the only one is %s, %v", main, err)
	}
	p = write(t, map[string]string{
		"go.mod": "module example.com/a\n", "vendor.go": "//go:build vendor\n\n" + program, "cmd/a.v1/main.go": program, "e2e/main.go": "//go:build e2e\n\n" + program,
	})
	if main, err := p.Main(""); err != nil || main != "./cmd/a.v1" {
		t.Errorf("the only one that is built without tags is %s, %v", main, err)
	}
	if main, err := p.Main("e2e"); err != nil || main != "./e2e" {
		t.Errorf("one that needs tags is %s, %v", main, err)
	}
	p = write(t, map[string]string{"go.mod": "module example.com/a\n", "a.go": library})
	_, err = p.Main("")
	expectError(t, err, "no main package")
}

func TestFolders(t *testing.T) {
	folders := fixture(t, "single").Folders()
	if !slices.Equal(folders.CRDs, []string{"config/crd"}) || !slices.Equal(folders.Samples, []string{"config/samples"}) {
		t.Errorf("kubebuilder's are %+v", folders)
	}
	if folders := fixture(t, "sdk").Folders(); !slices.Equal(folders.CRDs, []string{"deploy"}) || !slices.Equal(folders.RBAC, []string{"deploy"}) {
		t.Errorf("operator-sdk's are %+v", folders)
	}
}
