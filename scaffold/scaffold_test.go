// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

var update = flag.Bool("update", false, "write go.mod and go.sum of new projects again, with the versions of this repository")

// inits are options that work.
func inits(dir string) InitOptions {
	return InitOptions{Dir: dir, Domain: "example.com", Repo: "example.com/yard", ProjectName: "yard", Owner: "A Person", License: "apache2", Year: 2026}
}

func frigate(dir string) APIOptions {
	return APIOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate"}
}

// must writes a plan.
func must(t *testing.T) func(*Plan, error) *Plan {
	t.Helper()
	return func(plan *Plan, err error) *Plan {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Write(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		return plan
	}
}

// snapshot is everything below a folder.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative := strings.TrimPrefix(strings.TrimPrefix(name, dir), "/")
		if entry.IsDir() {
			files[relative+"/"] = ""
			return nil
		}
		content, err := os.ReadFile(name)
		files[relative] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func expectSame(t *testing.T, before, after map[string]string) {
	t.Helper()
	for name, content := range before {
		if got, there := after[name]; !there {
			t.Errorf("%s is gone", name)
		} else if got != content {
			t.Errorf("%s has changed to\n%s\nfrom\n%s", name, got, content)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			t.Errorf("%s is new", name)
		}
	}
}

// TestUpdateModules takes the versions of this repository; test/modules sees that they stay equal.
func TestUpdateModules(t *testing.T) {
	if !*update {
		t.Skip("only with -update")
	}
	ours := testenv.Requirements(t, "../go.mod")
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	must(t)(CreateAPI(frigate(dir)))
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	for module := range testenv.Requirements(t, "templates/modules/go.mod.txt") {
		if version, there := ours[module]; there {
			run("go", "mod", "edit", "-require", module+"@"+version)
		}
	}
	run("go", "mod", "tidy")
	run("go", "mod", "edit", "-module", "example.com/project")
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("templates/modules", name+".txt"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
