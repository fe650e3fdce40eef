// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// sourceFile is a Go file of the module that is no test.
type sourceFile struct {
	path       string // relative to the module's folder, with slashes
	hash       string
	generator  string // the one of upstreamGenerators that made it; empty for all that they are given
	markers    markerSet
	references []string // packages that its markers refer to
	unknown    []Problem
}

// apiPackage is a folder with at least one file that generators are given.
type apiPackage struct {
	dir        string // relative to the module's folder, with slashes; "." for that folder itself
	markers    markerSet
	references []string
}

// discovery is what is known about the module's files without loading them.
type discovery struct {
	files    map[string]sourceFile // by path
	packages []apiPackage          // those with markers, sorted by folder
}

// with returns the folders of the packages that have one of the markers.
func (d *discovery) with(wanted markerSet) []string {
	var dirs []string
	for _, p := range d.packages {
		if p.markers.has(wanted) {
			dirs = append(dirs, p.dir)
		}
	}
	return dirs
}

// discover reads all Go files below the paths.
func discover(m module, config *Config) (*discovery, error) {
	files, err := listGoFiles(m, config.Paths)
	if err != nil {
		return nil, err
	}
	found := &discovery{files: make(map[string]sourceFile, len(files))}
	var (
		group errgroup.Group
		mu    sync.Mutex // guards found.files
	)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, name := range files {
		group.Go(func() error {
			content, err := os.ReadFile(m.absolute(name))
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a link to nowhere, as editors leave them beside a file with unsaved changes
			}
			if err != nil {
				return fmt.Errorf("finding markers: %w", err)
			}
			file := sourceFile{path: name, hash: hashOf(content)}
			if IsOutput(content) {
				file.generator = generatorOf(content)
			} else {
				file.markers, file.references = scanMarkers(content)
				file.unknown = unknownMarkers(name, content)
			}
			mu.Lock()
			defer mu.Unlock()
			found.files[name] = file
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found.collectPackages()
	return found, nil
}

// clientDir is the folder of an existing generated client, such as pkg/generated; empty if
// there is none.
func (d *discovery) clientDir() string {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		dir, isClientset := strings.CutSuffix(name, "/"+clientsetPart+"/"+versionedClientset+"/clientset.go")
		if isClientset && d.files[name].generator == "client-gen" {
			return dir
		}
	}
	return ""
}

// warnings are about markers that have no effect.
func (d *discovery) warnings() (all []Problem) {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		all = append(all, d.files[name].unknown...)
	}
	return all
}

func (d *discovery) collectPackages() {
	byDir := map[string]*apiPackage{}
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		file, dir := d.files[name], path.Dir(name)
		if file.generator != "" {
			continue
		}
		if byDir[dir] == nil {
			byDir[dir] = &apiPackage{dir: dir}
		}
		byDir[dir].markers |= file.markers
		byDir[dir].references = append(byDir[dir].references, file.references...)
	}
	for _, dir := range slices.Sorted(maps.Keys(byDir)) {
		if byDir[dir].markers&^codeRegisters != 0 {
			d.packages = append(d.packages, *byDir[dir])
		}
	}
}

// listGoFiles returns the Go files below the paths that can belong to packages of the module.
func listGoFiles(m module, paths []string) ([]string, error) {
	all := map[string]bool{}
	for _, pattern := range paths {
		root, recursive := strings.CutSuffix(filepath.ToSlash(pattern), "...")
		root = path.Clean(strings.TrimSuffix(root, "/"))
		start := m.absolute(root)
		if !filepath.IsLocal(filepath.FromSlash(root)) {
			if target, err := filepath.EvalSymlinks(start); err == nil {
				start = target // as in the module's folder there are no links
			}
			if !within(m.dir, start) {
				return nil, fmt.Errorf("%s is outside the module in %s", pattern, m.dir)
			}
		}
		info, err := os.Stat(start)
		if err != nil {
			return nil, fmt.Errorf("finding packages: %w", err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("%s is not a directory; paths must be directories, such as ./api", pattern)
		}
		err = filepath.WalkDir(start, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("finding packages: %w", err)
			}
			if entry.IsDir() {
				if file != start && (!recursive || ignoredDir(file, entry.Name())) {
					return fs.SkipDir
				}
				return nil
			}
			if isSource(entry.Name()) {
				all[m.relative(file)] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// ignoredDir reports whether ./... leaves out a folder: as go does, and other people's code.
func ignoredDir(dir, name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" || name == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod")) // another module
	return err == nil
}

// isSource reports whether go could take the file into a package.
func isSource(name string) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "_")
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
