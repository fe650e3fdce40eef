// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBadInput has a package that could be written beside whatever is wrong: it must not be.
func TestBadInput(t *testing.T) {
	const deepcopyGen = "// +k8s:deepcopy-gen=package\n"
	for name, test := range map[string]struct {
		file, content string
		want          []string // each is the beginning of one line of the message
	}{
		"does not parse": {
			"api/v1/types.go", "package v1\n\ntype Shelf struct {\n\tBooks []\n}\n",
			[]string{"api/v1/types.go:4:10: expected type, found newline"},
		},
		"undefined type": {
			"api/v1/types.go", "package v1\n\ntype Shelf struct {\n\tBooks []Books2\n\tMore Mooore\n}\n",
			[]string{"api/v1/types.go:4:10: undefined: Books2", "api/v1/types.go:5:7: undefined: Mooore"},
		},
		"undefined type, for controller-gen": {
			"api/v2/types.go", "// +kubebuilder:object:generate=true\npackage v2\n\ntype Shelf struct{ Books []Books2 }\n",
			[]string{"api/v2/types.go:4:28: undefined: Books2"},
		},
		"undefined in a signature": {
			"api/v1/more.go", "package v1\n\nfunc (s *Shelf) Add(b Books2) {}\n",
			[]string{"api/v1/more.go:3:23: undefined: Books2"},
		},
		"two types of one name": {
			"api/v1/more.go", "package v1\n\ntype Shelf struct{}\n",
			[]string{"api/v1/types.go:4:6: Shelf redeclared in this block"},
		},
		"an import that does not exist": {
			"api/v1/more.go", "package v1\n\nimport \"example.com/plain/nowhere\"\n\ntype More nowhere.Type\n",
			[]string{"api/v1/more.go:3:8: no required module provides package example.com/plain/nowhere"},
		},
		"an import that is not required": {
			"api/v1/more.go", "package v1\n\nimport \"example.com/other\"\n\ntype More other.Type\n",
			[]string{"api/v1/more.go:3:8: no required module provides package example.com/other"},
		},
		"an import cycle": {
			"lib/more.go", "package lib\n\nimport v1 \"example.com/plain/api/v1\"\n\ntype More v1.Shelf\n",
			[]string{"lib/more.go:3:11: import cycle not allowed: example.com/plain/api/v1 imports example.com/plain/lib imports example.com/plain/api/v1"},
		},
		"two packages in a folder": {
			"api/v1/more.go", "package v2\n",
			[]string{"api/v1: found packages"},
		},
		"a marker of a package": {
			"api/v1/doc.go", "// +k8s:deepcopy-gen=pakage\npackage v1\n",
			[]string{`api/v1/doc.go:1:1: deepcopy-gen: Package example.com/plain/api/v1: unsupported k8s:deepcopy-gen value: "pakage"`},
		},
		"a marker of a type": {
			"api/v1/more.go", "package v1\n\n// More is more.\n// +k8s:deepcopy-gen=yes\ntype More struct{ A []string }\n",
			[]string{`api/v1/more.go:4:1: deepcopy-gen: Type example.com/plain/api/v1.More: unsupported k8s:deepcopy-gen value: "yes"`},
		},
		"a type that cannot be copied": {
			"api/v1/more.go", "package v1\n\ntype More struct{ A chan int }\n",
			[]string{"api/v1/more.go:3:6: deepcopy-gen: Hit an unsupported type"},
		},
		"a marker of a client": {
			"api/v1/more.go", "package v1\n\n// More is more.\n// +genclient\n// +genclient:nonamespace\ntype More struct{}\n",
			[]string{"api/v1/more.go:5:1: client-gen: unknown tag detected: genclient:nonamespace"},
		},
		"a client of what is not compiled": {
			"special/v1/types.go", "//go:build special\n\npackage v1\n\n// +genclient\ntype More struct{}\n",
			[]string{"special/v1: client-gen: build constraints exclude all Go files"},
		},
		"two mistakes": {
			"api/v1/more.go", "package v1\n\n// +genclient:x\n// +genclient\ntype More struct{ A Unknown }\n",
			[]string{"api/v1/more.go:3:1: client-gen: unknown tag detected: genclient:x", "api/v1/more.go:5:21: undefined: Unknown"},
		},
		"a marker of a schema": {
			"api/v2/types.go", "// +kubebuilder:object:generate=true\n// +groupName=a.b\npackage v2\n\ntype Shelf struct {\n\t// +kubebuilder:validation:Minimum=few\n\tSize int32 `json:\"size\"`\n}\n",
			[]string{"api/v2/types.go:6:2: controller-gen: invalid minimum value"},
		},
		"a type that controller-gen gives no place for": {
			"api/v2/more.go", "package v2\n\ntype Set[T comparable] map[T]string\n",
			[]string{"api/v2: controller-gen: invalid map key type: T"},
		},
		"two kinds of one name": {
			"lib/more.go", "// +groupName=a.b\n// +versionName=v2\n// +kubebuilder:object:generate=true\npackage lib\n\nimport metav1 \"example.com/plain/meta\"\n\ntype Kind struct {\n\tmetav1.TypeMeta\n\tmetav1.ObjectMeta\n}\n",
			[]string{"lib/more.go:8:6: kind Kind of a.b/v2 is also declared at api/v2/kind.go:6"},
		},
		"a marker of RBAC": {
			"lib/more.go", "package lib\n\n// +kubebuilder:rbac:groups=apps,verb=get\n",
			[]string{"lib/more.go:3:1: controller-gen: unknown argument \"verb\""},
		},
		"does not parse, where only comments are read": {
			"controller/more.go", "package controller\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\nfunc Reconcile( {}\n",
			[]string{"controller/more.go:4:17: controller-gen: expected"},
		},
		"two packages in a folder where only comments are read": {
			"controller/more.go", "package other\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\n",
			[]string{"controller: found packages"},
		},
		"go.mod": {
			"go.mod", "module example.com/plain\n\ngo 1.26\n\nrequire nonsense\n",
			[]string{"go.mod:5:1: usage: require module/path v1.2.3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, plain().
				with("api/v1/types.go", "package v1\n\n// Shelf holds books.\ntype Shelf struct{ Pages []string }\n").
				with("api/v1/uses.go", "package v1\n\nimport \"example.com/plain/lib\"\n\ntype Uses struct{ Pages []lib.Page }\n").
				with("lib/lib.go", deepcopyGen+"package lib\n\ntype Page struct{ Lines []string }\n").
				with("api/v2/kind.go", "// +groupName=a.b\npackage v2\n\nimport metav1 \"example.com/plain/meta\"\n\ntype Kind struct {\n\tmetav1.TypeMeta\n\tmetav1.ObjectMeta\n}\n").
				with("controller/controller.go", "package controller\n").
				with("meta/meta.go", "package meta\n\ntype TypeMeta struct{}\n\ntype ObjectMeta struct{}\n").
				with(test.file, test.content))
			before := tree(t, r.options.Dir)
			_, err := Run(t.Context(), r.options)
			var source *Error
			if !errors.As(err, &source) {
				t.Fatalf("got %v, want an *Error", err)
			}
			lines := strings.Split(err.Error(), "\n")
			for _, want := range test.want {
				if !containsPrefix(lines, want) {
					t.Errorf("no line begins with\n  %s\nin\n  %s", want, strings.Join(lines, "\n  "))
				}
			}
			if after := tree(t, r.options.Dir); !maps.Equal(before, after) {
				t.Errorf("files were changed: there were %d and are now %d", len(before), len(after))
			}
		})
	}
}

func containsPrefix(lines []string, prefix string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func TestBadRequests(t *testing.T) {
	for name, test := range map[string]struct {
		files   files
		options Options
		want    string
	}{
		"no module":         {files{"a.go": "package a\n"}, Options{}, "no go.mod found in "},
		"no module line":    {files{"go.mod": "go 1.26\n"}, Options{}, "the module line is missing"},
		"no markers":        {files{"go.mod": "module a\n", "a.go": "package a\n"}, Options{}, "nothing to generate: no package in ./... has markers"},
		"no such folder":    {plain(), Options{Paths: []string{"./nowhere/..."}}, "nowhere: no such file"},
		"a file":            {plain(), Options{Paths: []string{"lib/lib.go"}}, "lib/lib.go is not a directory"},
		"outside":           {plain(), Options{Paths: []string{"../other"}}, "../other is outside the module"},
		"output outside":    {plain(), Options{CRDDir: "../crds"}, "the output directory ../crds is outside the module"},
		"unknown generator": {plain(), Options{Only: []string{"conversion"}}, `unknown generator "conversion"; generators: deepcopy,`},
		"no header":         {plain(), Options{HeaderFile: "nowhere.txt"}, "nowhere.txt: no such file"},
		"no configuration":  {plain(), Options{ConfigFile: "nowhere.yaml"}, "nowhere.yaml: no such file"},
		"unknown setting":   {plain().with(ConfigFileName, "generate: {crds: {}}\n"), Options{}, `opdock.yaml:1: unknown field "crds"`},
		"unknown below":     {plain().with(ConfigFileName, "generate:\n  # paths\n  paths: []\n  pathz: []\n"), Options{}, `opdock.yaml:4: unknown field "pathz"`},
		"unknown somewhere": {plain().with(ConfigFileName, "generate:\n  crd: {dir: a}\n  rbac: {}\n  dir: b\n"), Options{}, `opdock.yaml: unknown field "dir"`},
		"unknown tool":      {plain().with(ConfigFileName, "generate: {deepcopy: {tool: gen}}\n"), Options{}, `deepcopy.tool is "gen"`},
		"plural":            {plain().with(ConfigFileName, "generate: {client: {pluralExceptions: [Dish]}}\n"), Options{}, `contains "Dish"`},
		"two clients of one name": {
			plain().with("api/v1/more.go", "package v1\n\n// +genclient\ntype More struct{}\n").with("other/api/v1/more.go", "package v1\n\n// +genclient\ntype More struct{}\n"),
			Options{}, "packages api/v1 and other/api/v1 would get the same client",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, test.files)
			test.options.Dir, test.options.CacheDir = r.options.Dir, r.options.CacheDir
			if _, err := Run(t.Context(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if entries, err := os.ReadDir(r.options.CacheDir); err != nil || len(entries) > 0 {
				t.Errorf("there is a stamp of a run that failed: %v, %v", entries, err)
			}
		})
	}
}

func TestFoldersThatCannotBeWritten(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(r *runner)
		want  string
	}{
		"a file is where a folder should be": {func(r *runner) { r.write("config", "a file") }, "not a directory"},
		"a folder is where a file should be": {func(r *runner) { r.write("config/rbac/role.yaml/file", "") }, "role.yaml would be generated, but it is not a regular file"},
		"no permission": {func(r *runner) {
			if os.Geteuid() == 0 {
				r.t.Skip("root may write everywhere")
			}
			folder := r.path("config/rbac")
			if err := os.MkdirAll(folder, 0o755); err != nil {
				r.t.Fatal(err)
			}
			if err := os.Chmod(folder, 0o555); err != nil {
				r.t.Fatal(err)
			}
		}, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, plain().with("lib/more.go", "package lib\n\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\n"))
			test.spoil(r)
			before := tree(t, r.options.Dir)
			if _, err := Run(t.Context(), r.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if after := tree(t, r.options.Dir); !maps.Equal(before, after) {
				t.Errorf("files were changed: there were %d and are now %d", len(before), len(after))
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	r := newRunner(t, plain())
	ctx, cancel := context.WithCancel(t.Context())
	r.options.Progress = func(Step) { cancel() }
	if _, err := Run(ctx, r.options); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(r.options.Dir, copyV1)); err == nil {
		t.Error("a file was written")
	}
}
