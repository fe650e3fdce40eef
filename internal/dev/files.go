// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"crypto/sha256"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opdock/opdock/generate"
)

// fileState is the known state of a file.
type fileState struct {
	content digest
	// markers and outline are hashes of Go files: of what generators read in packages without API types, and in
	// packages with API types.
	markers, outline digest
	// declares means that it has markers of API types.
	declares bool
	// embeds means that it embeds other files into the binary.
	embeds bool
}

type digest [sha256.Size]byte

// files knows the content of the project's files, so a save without a change is not a change, and neither is a
// generated file.
type files struct {
	root  string
	known map[string]fileState // by absolute path
}

func newFiles(root string) *files { return &files{root: root, known: map[string]fileState{}} }

// learn reads the current content of all files below the folders.
func (f *files) learn(roots []string) error {
	for _, root := range roots {
		err := walkProject(roots, root, func(path string, entry fs.DirEntry) error {
			if !entry.IsDir() {
				f.accept(path)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// accept records the current content of a file as known.
func (f *files) accept(path string) {
	if state, exists := readState(path); exists {
		f.known[path] = state
	} else {
		delete(f.known, path)
	}
}

// compare returns the files that have changed, and records their content as known.
func (f *files) compare(paths []string) []change {
	var changes []change
	for _, path := range paths {
		before, was := f.known[path]
		now, is := readState(path)
		if was == is && before.content == now.content {
			continue
		}
		// Checked with both states of the file, because this file may be the one with the API types.
		api := before.declares || now.declares || f.inAPI(path)
		f.accept(path)
		changes = append(changes, change{
			path:     f.relative(path),
			generate: before.markers != now.markers || api && before.outline != now.outline,
			embedded: f.inEmbedding(path),
		})
	}
	return changes
}

// relative is how the user calls a file: relative to the project, and with slashes. Files of other modules keep their path.
func (f *files) relative(path string) string {
	if below, err := filepath.Rel(f.root, path); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return path
}

// inAPI reports whether the package of a file has API types.
func (f *files) inAPI(path string) bool {
	dir := filepath.Dir(path)
	for other, state := range f.known {
		if state.declares && filepath.Dir(other) == dir {
			return true
		}
	}
	return false
}

// inEmbedding reports whether a package in a parent folder embeds files.
func (f *files) inEmbedding(path string) bool {
	for other, state := range f.known {
		if dir := filepath.Dir(other); state.embeds && strings.HasPrefix(path, dir+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

func readState(path string) (state fileState, exists bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return fileState{}, false
	}
	state.content = sha256.Sum256(content)
	if !strings.HasSuffix(path, ".go") || generate.IsOutput(content) {
		return state, true
	}
	lines, declares := markerLines(content)
	state.markers = sha256.Sum256(bytes.Join(lines, []byte("\n")))
	state.declares = declares
	state.outline = sha256.Sum256(withoutBodies(content))
	state.embeds = bytes.Contains(content, []byte("\n//go:embed "))
	return state, true
}

// generatorMarkers are how markers begin that some generator reads.
var generatorMarkers = []string{"kubebuilder:", "k8s:", "groupName", "genclient", "versionName", "optional", "nullable", "listType", "listMapKey", "mapType", "structType", "required"}

// markerLines returns the lines with markers, and whether one of them describes types of an API.
func markerLines(content []byte) (lines [][]byte, declares bool) {
	for line := range bytes.Lines(content) {
		comment, isComment := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("//"))
		marker, isMarker := bytes.CutPrefix(bytes.TrimLeft(comment, " \t"), []byte("+"))
		if !isComment || !isMarker {
			continue
		}
		text := string(bytes.TrimSpace(marker))
		if !slices.ContainsFunc(generatorMarkers, func(prefix string) bool { return strings.HasPrefix(text, prefix) }) {
			continue
		}
		lines = append(lines, []byte(text))
		describesCode := strings.HasPrefix(text, "kubebuilder:rbac") || strings.HasPrefix(text, "kubebuilder:webhook") || strings.HasPrefix(text, "kubebuilder:scaffold")
		declares = declares || !describesCode
	}
	return lines, declares
}

// withoutBodies returns a Go file without the bodies of its functions, which no generator reads. A file that cannot
// be parsed is returned unchanged.
func withoutBodies(content []byte) []byte {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, "", content, parser.SkipObjectResolution)
	if err != nil {
		return content
	}
	var rest []byte
	from := 0
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		rest = append(rest, content[from:set.Position(function.Body.Lbrace).Offset]...)
		from = set.Position(function.Body.Rbrace).Offset
	}
	return append(rest, content[from:]...)
}
