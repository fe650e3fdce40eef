// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"go/ast"
	"reflect"
	"sync"

	"golang.org/x/tools/go/packages"
	"k8s.io/gengo/v2"
	"k8s.io/gengo/v2/parser"
)

// gengo's Parser loads all packages itself. It accepts no loaded packages and cannot be used for two generators.
// Loading takes nearly all of a generator's time, so this file builds parsers from packages that are loaded once.

// parserFactory builds parsers with a set of loaded packages.
type parserFactory struct {
	loaded   *loaded
	goPkgs   map[string]*packages.Package
	comments reflect.Value // of the type of Parser.endLineToCommentGroup; only read once it is filled
	// walking is held for writing while a parser walks types, because all parsers also modify the built-in types,
	// which gengo shares between them.
	walking sync.RWMutex
}

func newParserFactory(l *loaded) (*parserFactory, error) {
	f := &parserFactory{loaded: l, goPkgs: make(map[string]*packages.Package, len(l.order))}
	for _, p := range l.order {
		f.goPkgs[p.PkgPath] = p.Package
	}
	field, err := hiddenField(reflect.ValueOf(parser.New()).Elem(), "endLineToCommentGroup")
	if err != nil {
		return nil, err
	}
	f.comments = reflect.MakeMapWithSize(field.Type(), l.countComments())
	key := reflect.New(field.Type().Key()).Elem()
	if key.Kind() != reflect.Struct || key.NumField() != 2 || field.Type().Elem() != reflect.TypeFor[*ast.CommentGroup]() {
		return nil, fmt.Errorf("gengo's parser keeps comments in an unknown way: %s", field.Type())
	}
	file, err := hiddenField(key, "file")
	if err != nil {
		return nil, err
	}
	line, err := hiddenField(key, "line")
	if err != nil {
		return nil, err
	}
	for _, p := range l.order {
		for _, c := range p.comments {
			file.SetString(c.file)
			line.SetInt(int64(c.line))
			f.comments.SetMapIndex(key, reflect.ValueOf(c.group))
		}
	}
	return f, nil
}

func (l *loaded) countComments() (n int) {
	for _, p := range l.order {
		n += len(p.comments)
	}
	return n
}

// parserFor returns a parser in the state after loading the packages with these import paths.
func (f *parserFactory) parserFor(importPaths []string) (*parser.Parser, error) {
	requested := make(map[string]bool, len(importPaths))
	for _, path := range importPaths {
		if f.goPkgs[path] == nil {
			return nil, fmt.Errorf("package %s was not loaded", path)
		}
		requested[path] = true
	}
	p := parser.NewWithOptions(parser.Options{BuildTags: []string{gengo.StdBuildTag}})
	fields := reflect.ValueOf(p).Elem()
	for name, value := range map[string]any{
		"goPkgs":                f.goPkgs,
		"userRequested":         requested,
		"fset":                  f.loaded.fset,
		"endLineToCommentGroup": f.comments.Interface(),
	} {
		if err := setHidden(fields, name, value); err != nil {
			return nil, err
		}
	}
	return p, nil
}
