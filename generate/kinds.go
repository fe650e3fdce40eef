// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// checkKinds reports kinds that two packages declare for the same group and version. controller-gen would make one CRD
// with two versions of the same name of them, which no API server takes.
func (p *plan) checkKinds(l *loaded) error {
	found := problems{module: p.module}
	declared := map[string]token.Position{}
	for _, path := range p.importPaths(p.crd) {
		one := l.packages[path]
		group, grouped := markerValue(one, "groupName")
		if !grouped {
			continue
		}
		version, named := markerValue(one, "versionName")
		if !named {
			version = one.Name
		}
		for _, kind := range kindsOf(one) {
			position := l.fset.Position(kind.Pos())
			name := fmt.Sprintf("%s of %s/%s", kind.Name.Name, group, version)
			if other, taken := declared[name]; taken {
				found.addAt(position, "", fmt.Sprintf("kind %s is also declared at %s:%d", name, p.module.relative(other.Filename), other.Line))
				continue
			}
			declared[name] = position
		}
	}
	return found.err()
}

// kindsOf returns the types that embed TypeMeta and ObjectMeta. controller-gen recognizes kinds in the same way.
func kindsOf(p *loadedPackage) (kinds []*ast.TypeSpec) {
	for _, file := range p.Syntax {
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok || general.Tok != token.TYPE {
				continue
			}
			for _, spec := range general.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok && embeds(named, "TypeMeta") && embeds(named, "ObjectMeta") {
					kinds = append(kinds, named)
				}
			}
		}
	}
	return kinds
}

func embeds(spec *ast.TypeSpec, name string) bool {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return false
	}
	for _, field := range structure.Fields.List {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok && len(field.Names) == 0 && selector.Sel.Name == name {
			return true
		}
	}
	return false
}

// markerValue is the value of the first marker of that name in a package.
func markerValue(p *loadedPackage, name string) (value string, found bool) {
	for _, file := range p.Syntax {
		for _, comment := range markerComments(file) {
			if value, found := strings.CutPrefix(strings.TrimLeft(comment.Text, "/ \t"), "+"+name+"="); found {
				return strings.TrimSpace(value), true
			}
		}
	}
	return "", false
}
