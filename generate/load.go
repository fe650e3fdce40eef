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
	// whole means that a generator reads more than the types of the package.
	whole  bool
	parsed bool
	// hashes holds the hashes of its files as parsed, if they can change.
	hashes map[string]string
	// needs holds the imports that its own types use; set by parsing.
	needs []*loadedPackage
	// checked is closed when Types can be used by importers.
	checked    chan struct{}
	typeErrors []types.Error
	// comments are all comment groups by the line on which they end.
	comments []commentEnd
}

// own reports whether the package belongs to the module, or to another one of its workspace.
func (p *loadedPackage) own() bool { return p.listed.Module != nil && p.listed.Module.Main }

// commentEnd is a comment group and where it ends.
type commentEnd struct {
	file  string
	line  int
	group *ast.CommentGroup
}

// load loads the packages of these folders, and those that have the import paths. With an error about declarations, it
// returns what it has loaded.
func load(ctx context.Context, m module, fset *token.FileSet, dirs, importPaths []string) (*loaded, error) {
	patterns := slices.Clone(importPaths)
	for _, dir := range dirs {
		patterns = append(patterns, m.importPath(dir))
	}
	listed, err := goList(ctx, m, withImports, patterns)
	if err != nil {
		return nil, err
	}
	l := &loaded{module: m, fset: fset, packages: make(map[string]*loadedPackage, len(listed))}
	if err := l.addListed(listed); err != nil {
		return nil, err
	}
	if err := l.parseNeeded(ctx); err != nil {
		return nil, err
	}
	l.checkAll()
	return l, errors.Join(l.compileErrors(), ctx.Err())
}

// addListed builds the graph of packages, and reports the errors of go list.
func (l *loaded) addListed(listed []*listedPackage) error {
	for _, p := range listed {
		one := &loadedPackage{
			listed:  p,
			checked: make(chan struct{}),
			hashes:  map[string]string{},
			Package: &packages.Package{
				ID: p.ImportPath, PkgPath: p.ImportPath, Name: p.Name, Fset: l.fset,
				Imports: make(map[string]*packages.Package, len(p.Imports)),
			},
		}
		for _, name := range p.files() {
			one.GoFiles = append(one.GoFiles, filepath.Join(p.Dir, name))
		}
		if p.Module != nil {
			one.Module = &packages.Module{Path: p.Module.Path, Dir: p.Module.Dir, Main: p.Module.Main, GoVersion: p.Module.GoVersion}
		}
		for _, path := range p.Imports {
			if imported := l.packages[path]; imported != nil {
				one.Imports[path] = imported.Package
			}
		}
		one.whole = !p.DepOnly || one.own()
		l.packages[p.ImportPath] = one
		l.order = append(l.order, one)
	}
	return l.listErrors(listed)
}

// parseNeeded parses the requested packages and the module's own, and of their imports only those that types use.
// Most packages are imported for function bodies, which no generator reads.
func (l *loaded) parseNeeded(ctx context.Context) error {
	var (
		group   sync.WaitGroup
		mu      sync.Mutex // guards found and started
		found   = problems{module: l.module}
		started = map[*loadedPackage]bool{}
		cores   = make(chan struct{}, runtime.GOMAXPROCS(0))
		start   func(p *loadedPackage)
	)
	start = func(p *loadedPackage) {
		mu.Lock()
		defer mu.Unlock()
		if started[p] {
			return
		}
		started[p] = true
		group.Go(func() {
			cores <- struct{}{}
			err := ctx.Err()
			if err == nil {
				err = l.parse(p)
			}
			<-cores
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				addSyntaxErrors(&found, err)
				return
			}
			for _, needed := range p.needs {
				start(needed)
			}
		})
	}
	for _, p := range l.order {
		if p.whole {
			start(p)
		}
	}
	group.Wait()
	return errors.Join(ctx.Err(), found.err())
}

// checkAll type-checks packages concurrently, each after the packages that it needs.
func (l *loaded) checkAll() {
	var group sync.WaitGroup
	for _, p := range l.order {
		if !p.parsed {
			continue // no package needs it
		}
		group.Go(func() {
			defer close(p.checked)
			for _, needed := range p.needs {
				<-needed.checked
			}
			l.check(p)
		})
	}
	group.Wait()
}

func (l *loaded) parse(p *loadedPackage) error {
	var failures []error
	for _, name := range p.GoFiles {
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if p.local() {
			p.hashes[name] = hashOf(content)
		} else {
			blankBodies(content) // it is not edited, so it has no mistakes to report
		}
		file, err := parser.ParseFile(l.fset, name, content, parser.AllErrors|parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if !p.own() {
			dropFunctions(file, p.whole)
		}
		positions := l.fset.File(file.FileStart)
		for _, group := range file.Comments {
			end := positions.PositionFor(group.End(), true)
			p.comments = append(p.comments, commentEnd{file: end.Filename, line: end.Line, group: group})
		}
		p.Syntax = append(p.Syntax, file)
	}
	l.findNeeds(p)
	p.parsed = true
	return errors.Join(failures...)
}

// check type-checks the declarations. It continues after errors: without generated code there are always some.
func (l *loaded) check(p *loadedPackage) {
	if p.PkgPath == "unsafe" {
		p.Types = types.Unsafe
		return
	}
	config := types.Config{
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Importer:         importerFor(p),
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

// importerFor returns the importer of a package. Imports that it does not need may not be loaded yet; the remaining
// code does not use them.
func importerFor(p *loadedPackage) importer {
	needed := make(map[string]*types.Package, len(p.needs))
	for _, one := range p.needs {
		needed[one.PkgPath] = one.Types
	}
	return func(path string) (*types.Package, error) {
		if target, mapped := p.listed.ImportMap[path]; mapped {
			path = target
		}
		if imported := needed[path]; imported != nil {
			return imported, nil
		}
		return nil, fmt.Errorf("package %s is not loaded", path)
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
