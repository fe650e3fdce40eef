// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/scaffold"
)

// opdock runs the program in a folder.
func opdock(t *testing.T, dir, line string) {
	t.Helper()
	var screen bytes.Buffer
	app := cli.NewApp()
	app.Streams = cmdutil.Streams{Out: &screen, Err: &screen}
	app.Ask = nil
	if code := cli.Run(t.Context(), app, append(strings.Fields(line), "--dir", dir)); code != 0 {
		t.Fatalf("opdock %s: exit code %d\n%s", line, code, &screen)
	}
}

// inside runs another program in a folder and returns what it prints.
func inside(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = environment(t)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// environment lets the tests of a project find an API server, if there is one.
func environment(t *testing.T) []string {
	t.Helper()
	env := slices.DeleteFunc(os.Environ(), func(one string) bool {
		return strings.HasPrefix(one, "KUBEBUILDER_ASSETS=") || strings.HasPrefix(one, "OPDOCK_CONTROLLERS=") || strings.HasPrefix(one, "GOFLAGS=")
	})
	binary := os.Getenv("OPDOCK_CONTROLPLANE")
	if binary == "" {
		return env
	}
	assets, err := cluster.Assets(binary)
	if err != nil {
		t.Fatal(err)
	}
	return append(env, "KUBEBUILDER_ASSETS="+assets)
}

// linter is golangci-lint, if it has been built.
func linter(t *testing.T) string {
	t.Helper()
	name, err := filepath.Abs("../../bin/golangci-lint")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err != nil {
		return ""
	}
	return name
}

func allFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// everyStarter adds a kind of each starter. They are called as no variable can be called, and share a package.
func everyStarter(t *testing.T) []string {
	t.Helper()
	starters, err := scaffold.Starters()
	if err != nil {
		t.Fatal(err)
	}
	kinds := []string{"HTTPGate", "Func", "KAPP", "Range", "Package", "Map", "Select"}
	var lines []string
	for i, one := range starters {
		lines = append(lines, "create api --no-generate --group type.go --version v1beta1 --kind "+kinds[i]+" --from "+one.Name)
	}
	return append(lines, "generate --force")
}

// variants are the projects, each by its folder and the lines that make it. Together they have every feature of the
// scaffold, and each has several, because every project costs seconds to build, lint and test.
func variants(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"none": {"init --domain example.com --repo example.com/none --license none"},
		"one": {
			"init --domain example.com --repo example.com/one --owner Me --project-name yard",
			"create api --group ship --version v1 --kind Frigate --short-name fg",
			"create api --group ship --version v2 --kind Frigate",
			"create webhook --group ship --version v1 --kind Frigate --defaulting --programmatic-validation --conversion --spoke v2",
			"create api --group ship --version v1 --kind KAPP --empty",
			"create webhook --group ship --version v1 --kind KAPP --defaulting",
		},
		"several": {
			"init --domain example.com --repo example.com/several --license mit --multigroup",
			"create api --group ship --version v1alpha1 --kind Fleet --namespaced=false --plural armada",
			"create api --api-version collector.ip.example.com/v1 --kind Collector --empty --namespaced=false",
			"create api --api-version example.com/v1 --kind Harbour --controller=false",
			"create api --group apps --version v1 --kind Raft", // as a group of Kubernetes
			"create webhook --group ship --version v1alpha1 --kind Fleet --programmatic-validation",
		},
		"starters": append([]string{"init --domain example.com --repo example.com/starters"}, everyStarter(t)...),
	}
}

// TestProjects needs Go alone; API servers for the projects' own tests come from OPDOCK_CONTROLPLANE, and linting from
// bin/golangci-lint.
//
// A workspace lets go and the linter take all projects at once. That compiles and analyses what they share once, and
// proves the same: they require the same versions, and whether each go.mod and go.sum is complete on its own is what
// go mod tidy, which ignores workspaces, finds out.
func TestProjects(t *testing.T) {
	if testing.Short() {
		t.Skip("every project is built and tested")
	}
	root := t.TempDir()
	var workspace strings.Builder
	workspace.WriteString("go 1.26.0\n")
	var folders []string
	config := map[string]bool{}
	for name, lines := range variants(t) {
		dir := filepath.Join(root, name)
		t.Run(name, func(t *testing.T) {
			for _, line := range lines {
				opdock(t, dir, line)
			}
			if unformatted := inside(t, dir, "gofmt", "-l", "."); unformatted != "" {
				t.Errorf("gofmt would change:\n%s", unformatted)
			}
			inside(t, dir, "go", "mod", "tidy", "-diff")
		})
		if t.Failed() {
			return
		}
		workspace.WriteString("use ./" + name + "\n")
		folders = append(folders, "./"+name+"/...")
		content, err := os.ReadFile(filepath.Join(dir, lintConfig))
		if err != nil {
			t.Fatal(err)
		}
		config[string(content)] = true
	}
	if len(config) != 1 {
		t.Fatalf("the projects have %d different files %s, so one run of the linter cannot speak for all", len(config), lintConfig)
	}
	t.Run("controller-gen makes the same", func(t *testing.T) { controllerGenMakesTheSame(t, filepath.Join(root, "one")) })
	if err := os.WriteFile(filepath.Join(root, "go.work"), []byte(workspace.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	inside(t, root, slices.Concat([]string{"go", "build"}, folders)...)
	if lint := linter(t); lint != "" {
		// It has go vet among its linters.
		inside(t, root, slices.Concat([]string{lint, "run", "--allow-parallel-runners", "--config", filepath.Join("one", lintConfig)}, folders)...)
	} else {
		t.Log("there is no bin/golangci-lint, so nothing but go vet was run; make lint builds it")
		inside(t, root, slices.Concat([]string{"go", "vet"}, folders)...)
	}
	t.Log(inside(t, root, slices.Concat([]string{"go", "test", "-vet=off"}, folders)...))
}

const lintConfig = ".golangci.yml"

// controllerGenMakesTheSame shows that a project does not need opdock: its Makefile has another way.
func controllerGenMakesTheSame(t *testing.T, dir string) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	before := allFiles(t, dir)
	inside(t, dir, "make", "OPDOCK=", "generate", "manifests")
	after := allFiles(t, dir)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			t.Errorf("%s is different:\n%s", name, after[name])
		}
	}
	if len(before) != len(after) {
		t.Errorf("there are %d files, and were %d", len(after), len(before))
	}
}
