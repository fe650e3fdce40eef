// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// generatedNames returns the names that the generated files of a package declare. These files are not loaded.
func generatedNames(p *packages.Package) map[string]bool {
	names := map[string]bool{}
	if len(p.GoFiles) == 0 {
		return names
	}
	dir := filepath.Dir(p.GoFiles[0])
	entries, err := os.ReadDir(dir)
	if err != nil {
		return names
	}
	for _, entry := range entries {
		file := filepath.Join(dir, entry.Name())
		if !isSource(entry.Name()) || slices.Contains(p.GoFiles, file) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil || generatorOf(content) == "" {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, declaration := range parsed.Decls {
			addDeclared(names, declaration)
		}
	}
	return names
}

func addDeclared(names map[string]bool, declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		names[d.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names[name.Name] = true
				}
			}
		}
	}
}
