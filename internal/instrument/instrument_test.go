// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/semver"

	"github.com/opdock/opdock/internal/testenv"
)

// versionOf is the version of controller-runtime that this module uses, whose source is in the module cache.
func versionOf(t *testing.T) string {
	t.Helper()
	return testenv.Requirements(t, "../../go.mod")[module]
}

// newProject writes a module that uses controller-runtime, with this module's own sums.
func newProject(t *testing.T, more string) Project {
	t.Helper()
	dir := t.TempDir()
	own, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	// All that this module requires, so that no version has to be looked up.
	_, requirements, _ := strings.Cut(string(own), "\n")
	testenv.WriteFiles(t, dir, map[string]string{
		"go.mod": "module example.com/operator\n" + requirements + more,
		"go.sum": string(sums),
		"main.go": `package main

import (
	"sigs.k8s.io/controller-runtime/pkg/internal/controller"
)
`,
	})
	return Project{Dir: dir, Env: append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK="), CopiesDir: filepath.Join(t.TempDir(), "cache"), StateDir: t.TempDir()}
}

func TestPatchesOfAllVersions(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	// Whatever versions there are in the module cache of those that are promised; test/instrument builds with some.
	found, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "sigs.k8s.io", "controller-runtime@v0.*"))
	if err != nil || len(found) == 0 {
		t.Fatalf("there are %v, %v", found, err)
	}
	for _, from := range found {
		_, version, _ := strings.Cut(filepath.Base(from), "@")
		if semver.Compare(version, "v0.4.0") < 0 {
			continue // before client-go had rest.Config.Wrap
		}
		to, err := copyPatched(from, version, t.TempDir())
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		for _, one := range patches {
			text, err := os.ReadFile(filepath.Join(to, one.file))
			if errors.Is(err, fs.ErrNotExist) && one.instead != "" {
				text, err = os.ReadFile(filepath.Join(to, one.instead))
			}
			if err != nil || !strings.Contains(string(text), hookName+".") {
				t.Errorf("%s: %s is not patched: %v", version, one.file, err)
			}
		}
	}
}

// The hook becomes part of controller-runtime, whose go.mod decides about the language: 0.8 has Go 1.15.
func TestTheHookCompilesInOldModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testenv.WriteFiles(t, dir, map[string]string{
		"go.mod":       "module example.com/old\n\ngo 1.15\n",
		"hook/hook.go": string(hookSource),
		"main.go":      "package main\n\nimport \"example.com/old/hook\"\n\nfunc main() { hook.Transport(nil) }\n",
	})
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}

// TestLoops has the loops of several versions. Until 0.10, the loop calls the reconciler itself, so marks around the
// controller's method would never be sent. Before 0.7, there is no context.
func TestLoops(t *testing.T) {
	t.Parallel()
	const (
		withContext = "package controller\n\nfunc (c *Controller) Reconcile(ctx context.Context, req Request) (Result, error) {\n\treturn c.Do.Reconcile(ctx, req)\n}\n\n" +
			"func (c *Controller) loop(ctx context.Context, req Request) {\n\t_, _ = %s\n}\n"
		without = "package controller\n\nfunc (c *Controller) Reconcile(r Request) (Result, error) {\n\treturn c.Do.Reconcile(r)\n}\n\n" +
			"func (c *Controller) loop(req Request) {\n\t_, _ = %s\n}\n"
	)
	for name, one := range map[string]struct {
		text, call string
		want       []string // in this order
	}{
		"0.25": {withContext, "c.Reconcile(ctx, req)", []string{
			"opdockInnerReconcile(ctx context.Context, req Request)", "return c.Do.Reconcile(ctx, req)", "func (c *Controller) Reconcile(ctx context.Context, req Request)",
			"ctx, opdockEnd := opdockhook.Begin(ctx, c.Name, req)", "= c.opdockInnerReconcile(ctx, req)", "_, _ = c.Reconcile(ctx, req)",
		}},
		"0.8": {withContext, "c.Do.Reconcile(ctx, req)", []string{
			"func (c *Controller) Reconcile(ctx context.Context, req Request)", "func (c *Controller) opdockReconcile(ctx context.Context, req Request)",
			"ctx, opdockEnd := opdockhook.Begin(ctx, c.Name, req)", "= c.Do.Reconcile(ctx, req)", "_, _ = c.opdockReconcile(ctx, req)",
		}},
		"0.6": {without, "c.Do.Reconcile(req)", []string{
			"func (c *Controller) Reconcile(r Request)", "func (c *Controller) opdockReconcile(r Request)",
			"opdockEnd := opdockhook.BeginWithoutContext(c.Name, r)", "= c.Do.Reconcile(r)", "_, _ = c.opdockReconcile(req)",
		}},
		"an unknown loop": {withContext, "call(ctx, req)", nil},
	} {
		got, err := patch("controller.go", fmt.Appendf(nil, one.text, one.call), markReconcile)
		if (err == nil) != (one.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
		rest := string(got)
		for _, want := range one.want {
			_, after, found := strings.Cut(rest, want)
			if !found {
				t.Errorf("%s: %q is missing in\n%s", name, want, got)
				break
			}
			rest = after
		}
	}
}

func TestUnsupportedProjects(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		change func(*Project)
		want   string
	}{
		"vendored": {func(p *Project) { testenv.WriteFiles(t, p.Dir, map[string]string{"vendor/modules.txt": ""}) }, "vendors its dependencies"},
		"without controller-runtime": {func(p *Project) {
			testenv.WriteFiles(t, p.Dir, map[string]string{"go.mod": "module example.com/operator\n\ngo 1.26\n"})
		}, "does not use controller-runtime"},
		"with a modfile of its own": {func(p *Project) { p.Env = append(p.Env, "GOFLAGS=-modfile=x.mod") }, "GOFLAGS already sets -modfile"},
	} {
		p := newProject(t, "")
		one.change(&p)
		_, err := p.Prepare(t.Context())
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

func TestPrepareLeavesTheProjectAlone(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	before := snapshot(t, p.Dir)
	build, err := p.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if build.Version != versionOf(t) || len(build.Flags) != 1 || len(build.Env) != 0 {
		t.Errorf("the build is %+v", build)
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", "{{.Dir}}"}, append(build.Flags, module+"/pkg/cluster")...)...)
	cmd.Dir, cmd.Env = p.Dir, p.Env
	output, err := cmd.Output() // without a note about downloads, which a new machine prints
	if err != nil || !strings.HasPrefix(string(output), p.CopiesDir) {
		t.Errorf("the build uses %s: %v", output, err)
	}
	if after := snapshot(t, p.Dir); after != before {
		t.Errorf("the project has changed:\n%s\ninstead of\n%s", after, before)
	}
	again, err := p.Prepare(t.Context())
	if err != nil || again.Flags[0] != build.Flags[0] {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

// A folder that replaces controller-runtime gets another copy when it changes.
func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]string{}
	for _, change := range []struct {
		name, file, text string
		same             string
	}{
		{"at first", "pkg/a.go", "package a\n", ""},
		{"a test", "pkg/a_test.go", "package a\n", "at first"},
		{"a hidden file", ".git/HEAD", "main\n", "at first"},
		{"another text", "pkg/a.go", "package a // changed\n", ""},
		{"another file", "pkg/b.go", "package a\n", ""},
	} {
		testenv.WriteFiles(t, dir, map[string]string{change.file: change.text})
		got, err := fingerprint(dir)
		if err != nil {
			t.Fatal(err)
		}
		if before := seen[got]; before != change.same {
			t.Errorf("%s: got the same fingerprint as %q, want the same as %q", change.name, before, change.same)
		}
		if change.same == "" {
			seen[got] = change.name
		}
	}
	if _, err := fingerprint(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder has a fingerprint")
	}
}

// All projects of a user share their copies, so that they are compiled once.
func TestCopies(t *testing.T) {
	for name, c := range map[string]struct {
		project Project
		want    string
	}{
		"by default":       {Project{Env: []string{"HOME=/h", "XDG_CACHE_HOME=/c"}, StateDir: "/s"}, "/c/opdock/instrumented"},
		"without a home":   {Project{StateDir: "/s"}, "/s/instrumented"},
		"somewhere chosen": {Project{CopiesDir: "/d", Env: []string{"XDG_CACHE_HOME=/c"}}, "/d"},
	} {
		if got := c.project.Copies(); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

func TestWorkspaces(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	root := t.TempDir()
	if err := os.Rename(p.Dir, filepath.Join(root, "operator")); err != nil {
		t.Fatal(err)
	}
	p.Dir = filepath.Join(root, "operator")
	testenv.WriteFiles(t, root, map[string]string{"go.work": "go 1.26.0\n\nuse ./operator\n"})
	p.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	build, err := p.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(build.Flags) != 0 || len(build.Env) != 1 {
		t.Fatalf("the build is %+v", build)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", module+"/pkg/cluster")
	cmd.Dir, cmd.Env = p.Dir, slices.Concat(p.Env, build.Env)
	output, err := cmd.Output() // without a note about downloads, which a new machine prints
	if err != nil || !strings.HasPrefix(string(output), p.CopiesDir) {
		t.Errorf("the build uses %s: %v", output, err)
	}
}

// snapshot is what a folder has.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all.WriteString(path + "\n" + string(data) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
