// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const stripped = `// Package a has everything.
package a

import (
	"fmt"
	"net/http"
	"time"
	other "example.com/types"
	. "example.com/dot"
)

// T is a type.
type T struct {
	Since time.Time // when
}

// F is a function.
func F() {
	// in F
	fmt.Println() // at the end
}

// Detached.

// M is a method.
func (T) M(o other.O) {
	// in M
}

// V is a variable.
var V = http.DefaultClient // of a package that types do without

// C is a constant.
const C = 1
`

func TestDropFunctions(t *testing.T) {
	for name, test := range map[string]struct {
		whole                    bool
		comments, names, needing []string
	}{
		"types only": {
			false, []string{"Package a has everything.", "T is a type.", "when", "Detached.", "M is a method.", "C is a constant."},
			[]string{"T", "M", "C"}, []string{"example.com/dot", "example.com/types", "time"},
		},
		"whole": {
			true, []string{
				"Package a has everything.", "T is a type.", "when", "F is a function.", "Detached.", "M is a method.", "V is a variable.",
				"of a package that types do without", "C is a constant.",
			},
			[]string{"T", "F", "M", "V", "C"}, []string{"example.com/dot", "example.com/types", "fmt", "net/http", "time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := parser.ParseFile(token.NewFileSet(), "a.go", stripped, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			dropFunctions(file, test.whole)
			var comments, names []string
			for _, group := range file.Comments {
				comments = append(comments, strings.TrimSpace(group.Text()))
			}
			for _, declaration := range file.Decls {
				declared := map[string]bool{}
				addDeclared(declared, declaration)
				for name := range declared {
					names = append(names, name)
				}
				if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
					t.Errorf("%s has a body", function.Name)
				}
			}
			expect(t, "comments", comments, test.comments)
			expect(t, "declarations", names, test.names)
			expect(t, "needs", needsOf(file, test.whole), test.needing)
		})
	}
}

// needsOf is what a package of one file needs.
func needsOf(file *ast.File, whole bool) []string {
	l := &loaded{packages: map[string]*loadedPackage{}}
	p := &loadedPackage{Package: &packages.Package{Syntax: []*ast.File{file}, Imports: map[string]*packages.Package{}}, listed: &listedPackage{}, whole: whole}
	for _, path := range []string{"fmt", "net/http", "time", "example.com/types", "example.com/dot"} {
		one := &packages.Package{PkgPath: path, Name: path[strings.LastIndex(path, "/")+1:]}
		l.packages[path] = &loadedPackage{Package: one}
		p.Imports[path] = one
	}
	l.findNeeds(p)
	var needs []string
	for _, one := range p.needs {
		needs = append(needs, one.PkgPath)
	}
	slices.Sort(needs)
	return needs
}
