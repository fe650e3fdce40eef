// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
)

// dropFunctions removes the parts of a file that no generator reads: the bodies of functions with their comments and,
// unless the whole file is needed, also functions and variables. They take most of the memory after parsing, and are
// the reason for most imports.
func dropFunctions(file *ast.File, whole bool) {
	var dropped []ast.Node // in the order of the file
	kept := make([]ast.Decl, 0, len(file.Decls))
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if !whole && d.Recv == nil {
				dropped = appendWithDoc(dropped, d.Doc, d)
				continue
			}
			if d.Body != nil {
				dropped = append(dropped, d.Body)
				d.Body = nil
			}
		case *ast.GenDecl:
			if !whole && d.Tok == token.VAR && len(d.Specs) > 0 {
				dropped = appendWithDoc(dropped, d.Doc, d)
				if last, ok := d.Specs[len(d.Specs)-1].(*ast.ValueSpec); ok && last.Comment != nil {
					dropped = append(dropped, last.Comment)
				}
				continue
			}
		}
		kept = append(kept, declaration)
	}
	file.Decls = slices.Clip(kept)
	file.Comments = commentsOutside(file.Comments, dropped)
}

func appendWithDoc(nodes []ast.Node, doc *ast.CommentGroup, node ast.Node) []ast.Node {
	if doc != nil {
		nodes = append(nodes, doc)
	}
	return append(nodes, node)
}

// commentsOutside returns the comments that are not in or at one of the nodes. Both are in the order of the file.
func commentsOutside(comments []*ast.CommentGroup, nodes []ast.Node) []*ast.CommentGroup {
	kept := make([]*ast.CommentGroup, 0, len(comments))
	for _, group := range comments {
		for len(nodes) > 0 && nodes[0].End() <= group.Pos() {
			nodes = nodes[1:]
		}
		if len(nodes) == 0 || group.Pos() < nodes[0].Pos() {
			kept = append(kept, group)
		}
	}
	return slices.Clip(kept)
}

// findNeeds records the imports that the remaining code of a package uses. For a whole package, all imports count,
// because the types of its variables may come from functions that they call.
func (l *loaded) findNeeds(p *loadedPackage) {
	needed := map[*loadedPackage]bool{}
	for _, file := range p.Syntax {
		var mentioned map[string]bool
		if !p.whole {
			mentioned = qualifiers(file)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // a file that parses has none of these
			}
			if target, mapped := p.listed.ImportMap[path]; mapped {
				path = target
			}
			imported := l.packages[path]
			if imported == nil {
				continue
			}
			name := imported.Name
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if p.whole || name == "." || mentioned[name] {
				needed[imported] = true
			}
		}
	}
	for _, imported := range p.Imports {
		if one := l.packages[imported.PkgPath]; needed[one] {
			p.needs = append(p.needs, one)
		}
	}
}

// qualifiers are the names before the dots in a file's declarations.
func qualifiers(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, declaration := range file.Decls {
		ast.Inspect(declaration, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if name, ok := selector.X.(*ast.Ident); ok {
					names[name.Name] = true
				}
			}
			return true
		})
	}
	return names
}
