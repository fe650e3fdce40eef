// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBlankBodies(t *testing.T) {
	for name, test := range map[string]struct{ source, want string }{
		"a function":       {"func f() {\n\ta()\n}\nvar a = 1\n", "func f() {\n    \n}\nvar a = 1\n"},
		"a method":         {"func (t T) f(a int) (int, error) { return 1, nil }\n", "func (t T) f(a int) (int, error) {               }\n"},
		"no body":          {"func f()\nvar a = T{1}\n", "func f()\nvar a = T{1}\n"},
		"types with parts": {"func f(a struct{ b int }, c interface{}) interface{ d() } { e() }", "func f(a struct{ b int }, c interface{}) interface{ d() } {     }"},
		"type parameters":  {"func f[T interface{ ~int }](t T) { a() }", "func f[T interface{ ~int }](t T) {     }"},
		"several lines":    {"func f(\n\ta int,\n) {\n\tb()\n}\n", "func f(\n\ta int,\n) {\n    \n}\n"},
		"braces that are none": {
			"func f() {\n\ta(\"}\", `\n}`, '}', '\\'', \"\\\"}\") // }\n\t/* } */\n}\n",
			"func f() {\n" + strings.Repeat(" ", len("\ta(\"}\", `")) + "\n" + strings.Repeat(" ", len("}`, '}', '\\'', \"\\\"}\") // }")) + "\n        \n}\n",
		},
		"no functions":            {"// func f() {}\n\nvar s = `\nfunc f() { a() }\n`\n", "// func f() {}\n\nvar s = `\nfunc f() { a() }\n`\n"},
		"a variable":              {"var f = func() { a() }\n", "var f = func() { a() }\n"},
		"no end":                  {"func f() { a()\n", "func f() { a()\n"},
		"lines of somewhere else": {"func f() {\n//line x.go:3\n}\n", "func f() {\n//line x.go:3\n}\n"},
	} {
		got := []byte(test.source)
		blankBodies(got)
		if string(got) != test.want {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, test.want)
		}
	}
}

// TestBlankBodiesChangesNothingElse compares what is left of files after both ways, with all positions.
func TestBlankBodiesChangesNothingElse(t *testing.T) {
	roots := []string{filepath.Join(build.Default.GOROOT, "src", "go"), filepath.Join(build.Default.GOROOT, "src", "text"), "."}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.Contains(file, "testdata") {
				return err
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			want := dumpDeclarations(t, file, source)
			blankBodies(source)
			if got := dumpDeclarations(t, file, source); got != want {
				t.Errorf("%s is different: %s", file, firstDifference(want, got))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func dumpDeclarations(t *testing.T, name string, source []byte) string {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	dropFunctions(file, true)
	var text strings.Builder
	if err := ast.Fprint(&text, fset, file, nil); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
