// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AmbiguousMainError is returned if a project has several programs and nothing says which is the operator.
type AmbiguousMainError struct {
	Mains []string
}

func (e *AmbiguousMainError) Error() string {
	return fmt.Sprintf("the project has %d main packages: %s; select the operator with --main",
		len(e.Mains), strings.Join(e.Mains, ", "))
}

// Main is the operator's main package as the go command names it in the project's folder, such as ./cmd. The chosen one
// may be empty, and is then where the layouts have it, or else the only one that there is.
func (p *Project) Main(chosen string) (string, error) {
	if chosen != "" {
		return p.chosenMain(chosen)
	}
	for _, usual := range []string{"cmd", ".", "cmd/manager", "cmd/" + p.Name} {
		if p.isMain(usual) {
			return pattern(usual), nil
		}
	}
	all, err := p.Mains()
	if err != nil {
		return "", err
	}
	switch len(all) {
	case 0:
		return "", fmt.Errorf("the project in %s has no main package", p.Dir)
	case 1:
		return all[0], nil
	default:
		return "", &AmbiguousMainError{Mains: all}
	}
}

func (p *Project) chosenMain(chosen string) (string, error) {
	folder := chosen
	if !filepath.IsAbs(folder) {
		folder = p.path(folder)
	}
	if strings.HasSuffix(folder, ".go") {
		folder = filepath.Dir(folder)
	}
	below, err := filepath.Rel(p.Dir, folder)
	if err == nil && filepath.IsLocal(below) && p.hasMain(filepath.ToSlash(below), true) {
		return pattern(filepath.ToSlash(below)), nil
	}
	all, err := p.Mains()
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%s is not a main package, and the project in %s has none", chosen, p.Dir)
	}
	return "", fmt.Errorf("%s is not a main package of the project; main packages: %s", chosen, strings.Join(all, ", "))
}

// Mains are the main packages of the project, as the go command names them in its folder.
func (p *Project) Mains() ([]string, error) {
	var found []string
	err := filepath.WalkDir(p.Dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		if path != p.Dir && (leftOut(entry.Name()) || entry.Name() == "hack" || isNestedModule(path)) {
			return filepath.SkipDir
		}
		if name := p.relative(path); p.isMain(name) {
			found = append(found, pattern(name))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("finding main packages: %w", err)
	}
	slices.Sort(found)
	return found, nil
}

// leftOut is true for folders that the go command ignores too, and for what does not belong to the project.
func leftOut(name string) bool {
	return name == "vendor" || name == "testdata" || name == "node_modules" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func isNestedModule(path string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// isMain reports whether the go command would build a program from the folder.
func (p *Project) isMain(folder string) bool { return p.hasMain(folder, false) }

// hasMain is isMain, and the same with any tags for a folder that the user has named.
func (p *Project) hasMain(folder string, named bool) bool {
	files, err := filepath.Glob(filepath.Join(p.path(folder), "*.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil || isIgnored(source) {
			continue
		}
		// A tag that the user sets with --tags may be needed for a folder that the user names.
		if built, err := build.Default.MatchFile(filepath.Split(file)); !named && (err != nil || !built) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.PackageClauseOnly)
		// All files of a folder are of one package, or it does not compile anyway.
		if parsed != nil && parsed.Name != nil && (err == nil || parsed.Name.Name != "_") {
			return parsed.Name.Name == "main"
		}
	}
	return false
}

// isIgnored is true for files that are run by themselves with go run and belong to no package.
func isIgnored(source []byte) bool {
	for line := range strings.Lines(string(source)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "//") {
			return false
		}
		if constraint, found := strings.CutPrefix(line, "//go:build "); found {
			return strings.Contains(constraint, "ignore") || strings.Contains(constraint, "tools")
		}
	}
	return false
}

func pattern(folder string) string {
	if folder == "." {
		return "."
	}
	return "./" + folder
}
