// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// upstreamTools builds the upstream programs, from the versions in go.mod, into the user's cache, where go build finds
// that there is nothing to do the next time.
var upstreamTools = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "opdock", "test", "upstream")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// controller-gen writes its own version into CRDs, which it only knows if it is installed by its version.
	version := "-ldflags=-X sigs.k8s.io/controller-tools/pkg/version.version=" + controllerToolsVersion
	args := []string{"build", version, "-o", dir + string(filepath.Separator), "sigs.k8s.io/controller-tools/cmd/controller-gen", "k8s.io/kube-openapi/cmd/openapi-gen"}
	for _, name := range []string{"deepcopy", "defaulter", "register", "client", "lister", "informer", "applyconfiguration"} {
		args = append(args, "k8s.io/code-generator/cmd/"+name+"-gen")
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

// upstream runs upstream programs in the folder of a module.
type upstream struct {
	t   *testing.T
	dir string
}

func (u upstream) run(tool string, args ...string) {
	u.t.Helper()
	tools, err := upstreamTools()
	if err != nil {
		u.t.Fatalf("building the upstream tools: %v", err)
	}
	command := exec.Command(filepath.Join(tools, tool), args...)
	command.Dir = u.dir
	if out, err := command.CombinedOutput(); err != nil {
		u.t.Fatalf("%s %s: %v\n%s", tool, strings.Join(args, " "), err, out)
	}
}

// tree reads all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		name, _ := filepath.Rel(dir, file)
		files[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// expectSameTrees compares every file of two folders.
func expectSameTrees(t *testing.T, wantDir, gotDir string) {
	t.Helper()
	want, got := tree(t, wantDir), tree(t, gotDir)
	for name, content := range want {
		if other, found := got[name]; !found {
			t.Errorf("%s is missing", name)
		} else if other != content {
			t.Errorf("%s differs: %s", name, firstDifference(content, other))
		}
	}
	for name := range got {
		if _, found := want[name]; !found {
			t.Errorf("%s is too much", name)
		}
	}
}

func firstDifference(want, got string) string {
	wanted, gotten := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wanted), len(gotten)) {
		if wanted[i] != gotten[i] {
			return "\n  want: " + wanted[i] + "\n  got:  " + gotten[i]
		}
	}
	return "one ends before the other"
}

// newModule copies a folder of Go files into a module of its own that requires what this module does.
func newModule(t *testing.T, from, name string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	requirements, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go.mod"), strings.Replace(string(requirements), "module github.com/opdock/opdock", "module "+name, 1))
	sums, err := os.ReadFile("../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "go.sum"), string(sums))
	return dir
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
