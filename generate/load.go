// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/go/packages"
)

// loaded is a set of packages with everything they import, parsed and type-checked as gengo's parser would, but once for
// all generators and without looking into functions.
type loaded struct {
	module   module
	fset     *token.FileSet
	packages map[string]*loadedPackage // by import path
	order    []*loadedPackage          // imports first
}

// loadedPackage is one package.
type loadedPackage struct {
	*packages.Package
	listed *listedPackage
	// checked is closed when Types can be used by importers.
	checked    chan struct{}
	typeErrors []types.Error
	// comments are all comment groups by the line on which they end.
	comments []commentEnd
}

// commentEnd is a comment group and where it ends.
type commentEnd struct {
	file  string
	line  int
	group *ast.CommentGroup
}

// load loads the packages of these folders, and those that have the import paths.
func load(ctx context.Context, m module, fset *token.FileSet, dirs, importPaths []string) (*loaded, error) {
	patterns := slices.Clone(importPaths)
	for _, dir := range dirs {
		patterns = append(patterns, m.importPath(dir))
	}
	listed, err := goList(ctx, m, patterns)
	if err != nil {
		return nil, err
	}
	l := &loaded{module: m, fset: fset, packages: make(map[string]*loadedPackage, len(listed))}
	if err := l.addListed(listed); err != nil {
		return nil, err
	}
	if err := l.parseAndCheck(ctx); err != nil {
		return nil, err
	}
	return l, l.compileErrors()
}

// addListed makes the graph of packages, and reports what go list has found wrong with it.
func (l *loaded) addListed(listed []*listedPackage) error {
	found := problems{module: l.module}
	for _, p := range listed {
		one := &loadedPackage{
			listed:  p,
			checked: make(chan struct{}),
			Package: &packages.Package{
				ID: p.ImportPath, PkgPath: p.ImportPath, Name: p.Name, Fset: l.fset,
				Imports: make(map[string]*packages.Package, len(p.Imports)),
			},
		}
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			one.GoFiles = append(one.GoFiles, filepath.Join(p.Dir, name))
		}
		if p.Module != nil {
			one.Module = &packages.Module{Path: p.Module.Path, Dir: p.Module.Dir, Main: p.Module.Main, GoVersion: p.Module.GoVersion}
		}
		for _, path := range p.Imports {
			if target, mapped := p.ImportMap[path]; mapped {
				path = target
			}
			if imported := l.packages[path]; imported != nil {
				one.Imports[path] = imported.Package
			}
		}
		l.packages[p.ImportPath] = one
		l.order = append(l.order, one)
	}
	for _, p := range listed {
		if p.Error != nil {
			position, message := l.locateListError(p)
			found.addAt(position, "", message)
		}
	}
	return found.err()
}

// parseAndCheck lets packages wait for their imports, so that as many as there are cores are worked on at any time.
func (l *loaded) parseAndCheck(ctx context.Context) error {
	parsed := make(map[*loadedPackage]chan struct{}, len(l.order))
	for _, p := range l.order {
		parsed[p] = make(chan struct{})
	}
	var (
		parsing, checking errgroup.Group
		mu                sync.Mutex // guards found
	)
	found := problems{module: l.module}
	parsing.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range l.order {
		checking.Go(func() error {
			defer close(p.checked)
			<-parsed[p]
			for _, imported := range p.Imports {
				<-l.packages[imported.PkgPath].checked
			}
			if ctx.Err() == nil {
				l.check(p)
			}
			return nil
		})
	}
	for _, p := range l.order {
		parsing.Go(func() error {
			defer close(parsed[p])
			if ctx.Err() != nil {
				return nil
			}
			if err := l.parse(p); err != nil {
				mu.Lock()
				defer mu.Unlock()
				addSyntaxErrors(&found, err)
			}
			return nil
		})
	}
	return errors.Join(parsing.Wait(), checking.Wait(), ctx.Err(), found.err())
}

func (l *loaded) parse(p *loadedPackage) error {
	var failures []error
	for _, name := range p.GoFiles {
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		file, err := parser.ParseFile(l.fset, name, content, parser.AllErrors|parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if !p.local() {
			dropBodies(file)
		}
		positions := l.fset.File(file.FileStart)
		for _, group := range file.Comments {
			end := positions.PositionFor(group.End(), true)
			p.comments = append(p.comments, commentEnd{file: end.Filename, line: end.Line, group: group})
		}
		p.Syntax = append(p.Syntax, file)
	}
	return errors.Join(failures...)
}

// dropBodies takes the bodies of functions out of a file, and the comments in them: nobody looks into those of other
// people's code, and they are most of what parsing leaves in memory.
func dropBodies(file *ast.File) {
	var bodies []*ast.BlockStmt
	for _, declaration := range file.Decls {
		if function, ok := declaration.(*ast.FuncDecl); ok && function.Body != nil {
			bodies = append(bodies, function.Body)
			function.Body = nil
		}
	}
	kept := make([]*ast.CommentGroup, 0, len(file.Comments)/2)
	for _, group := range file.Comments {
		for len(bodies) > 0 && bodies[0].End() <= group.Pos() {
			bodies = bodies[1:]
		}
		if len(bodies) == 0 || group.Pos() < bodies[0].Pos() {
			kept = append(kept, group)
		}
	}
	file.Comments = slices.Clip(kept)
}

// check type-checks the declarations. It goes on after errors: without generated code there are always some.
func (l *loaded) check(p *loadedPackage) {
	if p.PkgPath == "unsafe" {
		p.Types = types.Unsafe
		return
	}
	config := types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         importerFor(l, p),
		Error: func(err error) {
			var one types.Error
			if errors.As(err, &one) {
				p.typeErrors = append(p.typeErrors, one)
			}
		},
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	p.Types = types.NewPackage(p.PkgPath, p.Name)
	// The error is the first of those that Error was called with.
	_ = types.NewChecker(&config, l.fset, p.Types, nil).Files(p.Syntax)
}

type importer func(path string) (*types.Package, error)

func (f importer) Import(path string) (*types.Package, error) { return f(path) }

func importerFor(l *loaded, p *loadedPackage) importer {
	return func(path string) (*types.Package, error) {
		if target, mapped := p.listed.ImportMap[path]; mapped {
			path = target
		}
		imported := l.packages[path]
		if imported == nil || imported.Types == nil {
			return nil, fmt.Errorf("package %s is not loaded", path)
		}
		return imported.Types, nil
	}
}

func addSyntaxErrors(found *problems, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			addSyntaxErrors(found, one)
		}
		return
	}
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		found.add(Problem{Message: err.Error()})
		return
	}
	for _, one := range list {
		found.addAt(one.Pos, "", one.Msg)
	}
}
