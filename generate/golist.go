// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"k8s.io/gengo/v2"

	"github.com/opdock/opdock/internal/gocommand"
)

// listedPackage is the output of go list for a package.
type listedPackage struct {
	ImportPath string
	Name       string
	Dir        string
	Standard   bool
	DepOnly    bool
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	ImportMap  map[string]string
	Module     *struct {
		Path      string
		Dir       string
		GoVersion string
		Main      bool
		Replace   *struct{ Path, Version string }
	}
	Error *listError
}

// listError is what go list has found wrong with a package.
type listError struct {
	ImportStack []string // how the package came to be loaded
	Pos         string
	Err         string
}

const listFields = "ImportPath,Name,Dir,Standard,DepOnly,GoFiles,CgoFiles,Imports,ImportMap,Module,Error"

// files are the names of the files that are compiled, before cgo has translated any.
func (p *listedPackage) files() []string { return slices.Concat(p.GoFiles, p.CgoFiles) }

// leftOut reports whether the package was requested and all of its files are for other systems or tags. That is not a
// mistake: with ./... neither go nor controller-gen sees such a folder.
func (p *listedPackage) leftOut() bool {
	return !p.DepOnly && len(p.files()) == 0 && p.Error != nil && strings.HasPrefix(p.Error.Err, "build constraints exclude all Go files")
}

// What goList finds out about packages.
const (
	withImports    = "-deps" // everything they import, imports first
	withoutImports = "-find" // only which files they have
)

// goList runs go list. Like the upstream tools, it ignores generated files, so the result does not depend on an
// earlier run.
func goList(ctx context.Context, m module, depth string, patterns []string) ([]*listedPackage, error) {
	if len(patterns) == 0 {
		return nil, nil // go would take the current folder
	}
	args := append([]string{"list", "-e", depth, "-json=" + listFields, "-tags=" + gengo.StdBuildTag, "--"}, patterns...)
	command := gocommand.Command(ctx, m.dir, nil, args...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if gocommand.IsMissing(err) {
		return nil, fmt.Errorf("loading packages needs the go command: %w", err)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, goListError(m, stderr.String(), err)
	}
	var packages []*listedPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		p := &listedPackage{}
		err := decoder.Decode(p)
		if errors.Is(err, io.EOF) {
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decoding the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// anywhere matches only files that are compiled whatever the system, the architecture and the tags are.
var anywhere = build.Context{Compiler: runtime.Compiler, GOOS: "anything", GOARCH: "anything", CgoEnabled: true}

// listFiles lists the files of the packages in these folders. Most have no build constraints, so go list is not
// needed.
func listFiles(ctx context.Context, m module, dirs []string) ([]*listedPackage, error) {
	var (
		all   []*listedPackage
		asked []string
	)
	for _, dir := range dirs {
		p, err := anywhere.ImportDir(m.absolute(dir), 0)
		if err != nil || len(p.AllTags) > 0 || len(p.CgoFiles) > 0 {
			asked = append(asked, m.importPath(dir))
			continue
		}
		all = append(all, &listedPackage{ImportPath: m.importPath(dir), Name: p.Name, Dir: p.Dir, GoFiles: p.GoFiles})
	}
	listed, err := goList(ctx, m, withoutImports, asked)
	all = append(all, listed...)
	slices.SortFunc(all, func(a, b *listedPackage) int { return cmp.Compare(a.ImportPath, b.ImportPath) })
	return all, err
}

// listErrors are what go list has found wrong with the packages.
func (l *loaded) listErrors(listed []*listedPackage) error {
	found := problems{module: l.module}
	for _, p := range listed {
		if p.Error != nil && !p.leftOut() {
			position, message := l.locateListError(p)
			found.addAt(position, "", message)
		}
	}
	return found.err()
}

// locateListError returns the position of an error: from go, or else of the last import in its stack, or else the
// folder.
func (l *loaded) locateListError(p *listedPackage) (position token.Position, message string) {
	message = p.Error.Err
	if p.Error.Pos != "" {
		position = splitPosition(p.Error.Pos)
		if !filepath.IsAbs(position.Filename) {
			position.Filename = filepath.Join(l.module.dir, position.Filename)
		}
		return position, message
	}
	if stack := p.Error.ImportStack; len(stack) > 1 && strings.Contains(message, "import cycle") {
		message += ": " + strings.Join(stack, " imports ")
		if importer := l.packages[stack[len(stack)-2]]; importer != nil {
			if position, found := findImport(importer.GoFiles, stack[len(stack)-1]); found {
				return position, message
			}
		}
	}
	return token.Position{Filename: p.Dir}, message
}

// findImport finds the line that imports a package.
func findImport(files []string, path string) (token.Position, bool) {
	fset := token.NewFileSet()
	for _, file := range files {
		parsed, err := parser.ParseFile(fset, file, nil, parser.ImportsOnly)
		if err != nil {
			continue
		}
		for _, spec := range parsed.Imports {
			if strings.Trim(spec.Path.Value, "`\"") == path {
				return fset.Position(spec.Path.Pos()), true
			}
		}
	}
	return token.Position{}, false
}

// goListError is about what go list complains about as a whole, such as a broken go.mod.
func goListError(m module, stderr string, err error) error {
	found := problems{module: m}
	for line := range strings.Lines(stderr) {
		text := strings.TrimSpace(strings.TrimPrefix(line, "go: "))
		place, message, hasPlace := strings.Cut(text, ": ")
		if position := splitPosition(place); hasPlace && position.Line > 0 {
			if !filepath.IsAbs(position.Filename) {
				position.Filename = filepath.Join(m.dir, position.Filename)
			}
			found.addAt(position, "", message)
		}
	}
	if found.err() != nil {
		return found.err()
	}
	return fmt.Errorf("loading packages: %s: %w", strings.TrimSpace(stderr), err)
}
