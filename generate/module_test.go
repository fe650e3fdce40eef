// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// files are the content of a module by path.
type files map[string]string

// plain are two packages that import nothing, which makes loading them fast.
func plain() files {
	return files{
		"go.mod":          "module example.com/plain\n\ngo 1.26\n",
		"api/v1/doc.go":   "// +k8s:deepcopy-gen=package\npackage v1\n",
		"api/v1/types.go": "package v1\n\n// Shelf holds books.\ntype Shelf struct {\n\tBooks []Book\n}\n\ntype Book struct{ Authors map[string][]string }\n",
		"api/v2/types.go": "// +kubebuilder:object:generate=true\npackage v2\n\ntype Shelf struct{ Books []*string }\n",
		"lib/lib.go":      "package lib\n\ntype Page struct{ Lines []string }\n",
	}
}

func (f files) with(name, content string) files {
	all := maps.Clone(f)
	all[name] = content
	return all
}

// write makes a module of the files.
func (f files) write(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range f {
		writeFile(t, filepath.Join(dir, name), content)
	}
	return dir
}

// runner runs on one module with one cache.
type runner struct {
	t       *testing.T
	options Options
}

func newRunner(t *testing.T, f files) *runner {
	t.Helper()
	return &runner{t: t, options: Options{Dir: f.write(t), CacheDir: t.TempDir()}}
}

func (r *runner) path(name string) string { return filepath.Join(r.options.Dir, name) }

func (r *runner) write(name, content string) {
	r.t.Helper()
	writeFile(r.t, r.path(name), content)
}

func (r *runner) run() *Result {
	r.t.Helper()
	result, err := Run(r.t.Context(), r.options)
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// changes are the changes of one kind.
func changes(result *Result, kind ChangeKind) []string {
	var paths []string
	for _, change := range result.Changes {
		if change.Kind == kind {
			paths = append(paths, change.Path)
		}
	}
	return paths
}

func expect(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestFolderThatDoesNotExist(t *testing.T) {
	_, err := Run(t.Context(), Options{Dir: "/nowhere"})
	if !errors.As(err, new(*NoModuleError)) || err.Error() != "no go.mod found in /nowhere: the directory does not exist" {
		t.Errorf("the error is %v", err)
	}
}
