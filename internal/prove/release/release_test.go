// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/testenv"
)

func expectHint(t *testing.T, err error, want string) {
	t.Helper()
	var hinted *hint.Error
	if want != "" && (!errors.As(err, &hinted) || !strings.Contains(strings.Join(hinted.Hints, "\n"), want)) {
		t.Errorf("the error %v does not suggest %q", err, want)
	}
}

func TestWhatIsAModule(t *testing.T) {
	for release, want := range map[string][2]string{
		"@v1.2.0":                      {"", "v1.2.0"},
		"@latest":                      {"", "latest"},
		"example.com/ship@v1.2.0":      {"example.com/ship", "v1.2.0"},
		"example.com/ship/v2@v2.0.0-a": {"example.com/ship/v2", "v2.0.0-a"},
		"sub.example.com/a/b@latest":   {"sub.example.com/a/b", "latest"},
	} {
		if path, version, ok := moduleVersion(release); !ok || path != want[0] || version != want[1] {
			t.Errorf("%s: got %q, %q, %t", release, path, version, ok)
		}
	}
	for _, release := range []string{"v1.2.0", "HEAD@{1}", "@", "@{u}", "web@v1.2.0", "a/b@v1", "./a@v1", "main", "-x@v1", "example.com@v1"} {
		if path, version, ok := moduleVersion(release); ok {
			t.Errorf("%s is version %s of %q", release, version, path)
		}
	}
}

// proxy is the environment of a go command that knows one version of one module.
func proxy(t *testing.T) []string {
	t.Helper()
	source := testenv.Dir(t, map[string]string{"go.mod": "module example.com/ship\n", "main.go": "package main // old\n", "config/role.yaml": "kind: Role\n"})
	dir := t.TempDir()
	testenv.WriteFiles(t, dir, map[string]string{
		"example.com/ship/@v/list":        "v1.0.0\n",
		"example.com/ship/@v/v1.0.0.info": `{"Version": "v1.0.0"}`,
		"example.com/ship/@v/v1.0.0.mod":  "module example.com/ship\n",
	})
	archive, err := os.Create(filepath.Join(dir, "example.com", "ship", "@v", "v1.0.0.zip"))
	if err == nil {
		err = zip.CreateFromDir(archive, module.Version{Path: "example.com/ship", Version: "v1.0.0"}, source)
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "GOPROXY=file://"+dir, "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOMODCACHE="+t.TempDir())
}

func TestModules(t *testing.T) {
	env := proxy(t)
	for name, test := range map[string]struct{ module, release, want string }{
		"the project's own": {"example.com/ship", "@v1.0.0", "v1.0.0"},
		"the latest":        {"example.com/ship", "@latest", "v1.0.0"},
		"another":           {"example.com/fork", "example.com/ship@v1.0.0", "example.com/ship@v1.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Project{Module: test.module, Env: env}.Get(t.Context(), test.release, filepath.Join(t.TempDir(), "release"))
			if err != nil {
				t.Fatal(err)
			}
			if r.Name != test.want {
				t.Errorf("the release is called %q", r.Name)
			}
			if content, err := os.ReadFile(filepath.Join(r.Dir, "config", "role.yaml")); err != nil || string(content) != "kind: Role\n" {
				t.Errorf("its role is %q, %v", content, err)
			}
			testenv.WriteFile(t, filepath.Join(r.Dir, "config", "new.yaml"), "") // Go's module cache would refuse that
		})
	}
}

func TestModulesExplain(t *testing.T) {
	_, err := Project{Module: "example.com/ship", Env: proxy(t)}.Get(t.Context(), "@v9.9.9", filepath.Join(t.TempDir(), "release"))
	if err == nil || !strings.Contains(err.Error(), "downloading example.com/ship@v9.9.9: ") {
		t.Fatalf("got %v", err)
	}
	expectHint(t, err, "go list -m -versions example.com/ship")
}

func TestDirectories(t *testing.T) {
	dir := testenv.Dir(t, map[string]string{"old/go.mod": "module example.com/ship\n"})
	t.Chdir(dir)
	for _, path := range []string{"./old", filepath.Join(dir, "old")} {
		if r, err := (Project{}).Get(t.Context(), path, ""); err != nil || r.Name != path || !filepath.IsAbs(r.Dir) || filepath.Base(r.Dir) != "old" {
			t.Errorf("%s: %+v, %v", path, r, err)
		}
	}
	for _, path := range []string{".", "../missing"} {
		_, err := (Project{}).Get(t.Context(), path, "")
		if err == nil || !strings.Contains(err.Error(), path+" is not the source of a project") {
			t.Fatalf("%s: %v", path, err)
		}
		expectHint(t, err, "go.mod")
	}
}
