// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"path/filepath"
	"reflect"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// controller-tools loads all packages itself, which takes longer than everything else together, and accepts no other
// packages. So its packages are built here from those that are already loaded.

// controllerPackages builds packages for the generators of controller-tools, from loaded packages and from packages
// whose comments alone are read. They are in the order of go list, like the originals.
func (l *loaded) controllerPackages(commented []*listedPackage) ([]*loader.Package, error) {
	raw := make(map[string]*packages.Package, len(l.order)+len(commented))
	for _, p := range l.order {
		one := l.controllerPackage(p.listed)
		if p.parsed {
			one.Syntax = p.Syntax
		}
		for _, path := range p.listed.Imports {
			if imported := raw[path]; imported != nil {
				one.Imports[path] = imported
			}
		}
		// Imports has the packages themselves; in the source, vendored packages of the standard library have
		// other names.
		for name, path := range p.listed.ImportMap {
			if imported := raw[path]; imported != nil {
				one.Imports[name] = imported
			}
		}
		raw[p.PkgPath] = one
	}
	wrapped := map[*packages.Package]*loader.Package{}
	var roots []*loader.Package
	add := func(listed *listedPackage) {
		one := &loader.Package{Package: raw[listed.ImportPath]}
		wrapped[one.Package] = one
		roots = append(roots, one)
	}
	for _, p := range l.order {
		if !p.listed.DepOnly {
			add(p.listed)
		}
	}
	for _, listed := range commented {
		if raw[listed.ImportPath] == nil {
			raw[listed.ImportPath] = l.controllerPackage(listed)
		}
		if wrapped[raw[listed.ImportPath]] == nil {
			add(listed)
		}
	}
	return roots, l.giveLoader(roots, wrapped)
}

func (l *loaded) controllerPackage(listed *listedPackage) *packages.Package {
	one := &packages.Package{
		ID: listed.ImportPath, PkgPath: listed.ImportPath, Name: listed.Name, Fset: l.fset,
		Imports: make(map[string]*packages.Package, len(listed.Imports)),
	}
	for _, name := range listed.files() {
		one.CompiledGoFiles = append(one.CompiledGoFiles, filepath.Join(listed.Dir, name))
	}
	if len(listed.CgoFiles) > 0 {
		one.Imports["C"] = &packages.Package{ID: "C", PkgPath: "C", Name: "C"} // their names stay unknown
	}
	return one
}

// giveLoader creates a loader with the packages, and sets it in each of them.
func (l *loaded) giveLoader(roots []*loader.Package, known map[*packages.Package]*loader.Package) error {
	if len(roots) == 0 {
		return nil
	}
	field, err := hiddenField(reflect.ValueOf(roots[0]).Elem(), "loader")
	if err != nil {
		return err
	}
	if field.Kind() != reflect.Pointer || field.Type().Elem().Kind() != reflect.Struct {
		return fmt.Errorf("field loader of a package of controller-tools is a %s", field.Type())
	}
	made := reflect.New(field.Type().Elem())
	for name, value := range map[string]any{"cfg": &packages.Config{Fset: l.fset}, "packages": known, "Roots": roots} {
		if err := setHidden(made.Elem(), name, value); err != nil {
			return err
		}
	}
	for _, root := range roots {
		field, err := hiddenField(reflect.ValueOf(root).Elem(), "loader")
		if err != nil {
			return err
		}
		field.Set(made)
	}
	return nil
}
