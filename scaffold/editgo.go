// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// goImport is a package that main needs.
type goImport struct {
	alias string // empty if the package is called as its path ends
	path  string
}

func (i goImport) name() string {
	if i.alias != "" {
		return i.alias
	}
	return path.Base(i.path)
}

func (i goImport) line() string {
	if i.alias == "" || i.alias == path.Base(i.path) {
		return fmt.Sprintf("\t%q\n", i.path)
	}
	return fmt.Sprintf("\t%s %q\n", i.alias, i.path)
}

// nameInMain is what main calls a package, or would if it imported that.
func (t *tree) nameInMain(wanted goImport) (string, error) {
	content, err := t.read(mainFile)
	if err != nil || content == nil {
		return wanted.name(), err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), mainFile, content, parser.ImportsOnly)
	if err != nil {
		return "", wrongInput("%v", err)
	}
	for _, one := range parsed.Imports {
		switch {
		case unquote(one.Path.Value) != wanted.path:
		case one.Name == nil:
			return path.Base(wanted.path), nil
		case one.Name.Name != "_" && one.Name.Name != ".":
			return one.Name.Name, nil
		}
	}
	return wanted.name(), nil
}

// packageIn is the name of the package that a folder has already, or else this one.
func (t *tree) packageIn(dir, otherwise string) string {
	entries, err := os.ReadDir(filepath.Join(t.dir, filepath.FromSlash(dir)))
	if err != nil {
		return otherwise // there is none yet, or it shows elsewhere that it cannot be read
	}
	for _, entry := range entries {
		if !isGo(entry.Name()) || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		content, err := t.read(path.Join(dir, entry.Name()))
		if err != nil || content == nil {
			continue
		}
		if parsed, err := parser.ParseFile(token.NewFileSet(), entry.Name(), content, parser.PackageClauseOnly); err == nil {
			return parsed.Name.Name
		}
	}
	return otherwise
}

// addImports adds imports where the marker is.
func (t *tree) addImports(file, module string, imports ...goImport) error {
	for _, one := range imports {
		content, err := t.read(file)
		if err != nil {
			return err
		}
		if content == nil {
			return wrongInput("file %s does not exist, but must set up the new code", file).hint("this project layout is not supported")
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.ImportsOnly)
		if err != nil {
			return wrongInput("%v", err)
		}
		if slices.ContainsFunc(parsed.Imports, func(s *ast.ImportSpec) bool { return unquote(s.Path.Value) == one.path }) {
			continue
		}
		line := one.line()
		if !slices.ContainsFunc(parsed.Imports, func(s *ast.ImportSpec) bool { return within(unquote(s.Path.Value), module) }) {
			line = "\n" + line // the project's own packages are a separate group
		}
		if err := t.insert(file, markerImports, line); err != nil {
			return err
		}
	}
	return t.formatGo(file)
}

func (t *tree) formatGo(file string) error {
	content, err := t.read(file)
	if err != nil {
		return err
	}
	formatted, err := format.Source(content)
	if err != nil {
		return wrongInput("%s: %v", file, err)
	}
	return t.write(file, formatted)
}

// cutStatement removes the statement of a function that contains the text, and comments right above it.
func (t *tree) cutStatement(file, text string) error {
	content, err := t.read(file)
	if err != nil || content == nil {
		return err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, content, parser.ParseComments)
	if err != nil {
		return wrongInput("%v", err)
	}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		for _, statement := range function.Body.List {
			from, to := files.Position(statement.Pos()).Offset, files.Position(statement.End()).Offset
			if !bytes.Contains(content[from:to], []byte(text)) {
				continue
			}
			for _, comment := range parsed.Comments {
				if files.Position(comment.End()).Line == files.Position(statement.Pos()).Line-1 && strings.HasPrefix(comment.Text(), "nolint") {
					from = files.Position(comment.Pos()).Offset
				}
			}
			from = bytes.LastIndexByte(content[:from], '\n') + 1
			if end := bytes.IndexByte(content[to:], '\n'); end >= 0 {
				to += end + 1
			}
			return t.write(file, concat(content[:from], content[to:]))
		}
	}
	return nil
}

// cutUnusedImports removes the imports that the file no longer uses.
func (t *tree) cutUnusedImports(file string, imports ...goImport) error {
	for _, one := range imports {
		content, err := t.read(file)
		if err != nil || content == nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.SkipObjectResolution)
		if err != nil {
			return wrongInput("%v", err)
		}
		name := one.name()
		used := false
		ast.Inspect(parsed, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				if x, ok := selector.X.(*ast.Ident); ok && x.Name == name {
					used = true
				}
			}
			return !used
		})
		if !used {
			if err := t.cut(file, one.line()); err != nil {
				return err
			}
			// The separator of the group of own packages, if the group is empty now.
			if err := t.exchange(file, "\n\n\t// "+markerImports, "\n\t// "+markerImports); err != nil {
				return err
			}
		}
	}
	return nil
}

// importsOf returns the import paths in Go code; none if it cannot be read.
func importsOf(content []byte) []string {
	parsed, err := parser.ParseFile(token.NewFileSet(), "", content, parser.ImportsOnly)
	if err != nil {
		return nil
	}
	paths := make([]string, 0, len(parsed.Imports))
	for _, one := range parsed.Imports {
		paths = append(paths, unquote(one.Path.Value))
	}
	return paths
}

func unquote(literal string) string {
	text, err := strconv.Unquote(literal)
	if err != nil {
		return literal
	}
	return text
}
