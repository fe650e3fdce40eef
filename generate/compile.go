// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/packages"
)

// compileErrors returns mistakes in the module's own declarations. The upstream generators ignore them all, because
// without the generated code something is always missing, and then write files for types that do not exist. Mistakes
// that missing generated code cannot cause are reported here: in types, in constants and in the signatures of
// functions, unless they name something that is generated.
func (l *loaded) compileErrors() error {
	found := problems{module: l.module}
	for _, p := range l.order {
		if !p.own() {
			continue
		}
		for _, one := range p.typeErrors {
			if one.Soft || !declares(p.Syntax, one.Pos) || l.namesGenerated(p, one.Msg) {
				continue
			}
			found.addAt(l.fset.Position(one.Pos), "", one.Msg)
		}
	}
	return found.err()
}

// declares reports whether the position is in a type, a constant, an import or the signature of a function.
func declares(files []*ast.File, position token.Pos) bool {
	for _, file := range files {
		if position < file.FileStart || position > file.FileEnd {
			continue
		}
		for _, declaration := range file.Decls {
			if position < declaration.Pos() || position > declaration.End() {
				continue
			}
			general, ok := declaration.(*ast.GenDecl)
			return !ok || general.Tok != token.VAR
		}
	}
	return false
}

// namesGenerated reports whether a message is about something undefined in a package whose generated files were left out.
func (l *loaded) namesGenerated(p *loadedPackage, message string) bool {
	name, undefined := strings.CutPrefix(message, "undefined: ")
	if !undefined {
		return false
	}
	in := p.Package
	if qualifier, selected, qualified := strings.Cut(name, "."); qualified {
		name, in = selected, importedAs(p.Package, qualifier)
	}
	return in != nil && generatedNames(in)[name]
}

// importedAs finds the import that a qualifier means, by the package's own name.
func importedAs(p *packages.Package, qualifier string) *packages.Package {
	for _, file := range p.Syntax {
		for _, spec := range file.Imports {
			imported := p.Imports[strings.Trim(spec.Path.Value, `"`)]
			if imported == nil {
				continue
			}
			if spec.Name != nil && spec.Name.Name == qualifier || spec.Name == nil && imported.Name == qualifier {
				return imported
			}
		}
	}
	return nil
}
