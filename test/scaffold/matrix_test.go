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
	"github.com/opdock/opdock/scaffold"
)

// opdock runs the program in a folder.
func opdock(t *testing.T, dir, line string) {
	t.Helper()
	var screen bytes.Buffer
	app := cli.NewApp()
	app.Streams = cli.Streams{Out: &screen, Err: &screen}
	app.Ask = nil
	if code := app.Run(t.Context(), append(strings.Fields(line), "--dir", dir)); code != 0 {
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

// TestProjects needs Go alone; API servers for the projects' own tests come from OPDOCK_CONTROLPLANE, and linting from
// bin/golangci-lint.
func TestProjects(t *testing.T) {
	if testing.Short() {
		t.Skip("every project is built and tested")
	}
	for name, lines := range map[string][]string{
		"no kind at all": {"init --domain example.com --repo example.com/yard --license none"},
		"one group": {
			"init --domain example.com --repo example.com/yard --owner Me --project-name yard",
			"create api --group ship --version v1 --kind Frigate --short-name fg",
			"create api --group ship --version v2 --kind Frigate",
			"create webhook --group ship --version v1 --kind Frigate --defaulting --programmatic-validation --conversion --spoke v2",
			"create api --group ship --version v1 --kind KAPP --empty",
			"create webhook --group ship --version v1 --kind KAPP --defaulting",
		},
		"several groups": {
			"init --domain example.com --repo example.com/yard --license mit --multigroup",
			"create api --group ship --version v1alpha1 --kind Fleet --namespaced=false --plural armada",
			"create api --api-version collector.ip.example.com/v1 --kind Collector --empty --namespaced=false",
			"create api --api-version example.com/v1 --kind Harbour --controller=false",
			"create api --group apps --version v1 --kind Raft", // as a group of Kubernetes
			"create webhook --group ship --version v1alpha1 --kind Fleet --programmatic-validation",
		},
		"starters": append([]string{"init --domain example.com --repo example.com/yard"}, everyStarter(t)...),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, line := range lines {
				opdock(t, dir, line)
			}
			if unformatted := inside(t, dir, "gofmt", "-l", "."); unformatted != "" {
				t.Errorf("gofmt would change:\n%s", unformatted)
			}
			inside(t, dir, "go", "mod", "tidy", "-diff")
			inside(t, dir, "go", "build", "./...")
			inside(t, dir, "go", "vet", "./...")
			if lint := linter(t); lint != "" {
				inside(t, dir, lint, "run", "--allow-parallel-runners")
			} else {
				t.Log("there is no bin/golangci-lint, so nothing was linted")
			}
			out := inside(t, dir, "go", "test", "./...")
			t.Log(out)
		})
	}
}

// TestControllerGenMakesTheSame shows that a project does not need opdock: its Makefile has another way.
func TestControllerGenMakesTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("controller-gen is built")
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	dir := t.TempDir()
	for _, line := range []string{
		"init --domain example.com --repo example.com/yard --owner Me",
		"create api --group ship --version v1 --kind Frigate",
		"create webhook --group ship --version v1 --kind Frigate --defaulting --programmatic-validation",
	} {
		opdock(t, dir, line)
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
