// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdsource finds the line of Go that a part of a CustomResourceDefinition comes from, to show the source of
// what an API server refuses.
//
// It reads the source without compiling it, because it is asked when something is wrong. What it cannot follow, such as
// types of other modules, ends the search at the last line that it could.
package crdsource

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/crdspec"
)

// Refusal is one reason for which a server refuses a CRD.
type Refusal struct {
	// File is relative to the module's folder, with slashes; empty if the place could not be found.
	File string
	Line int
	// Path leads to the field in the kind's objects, such as spec.size; empty if it is not about a field.
	Path    string
	Message string
}

func (r Refusal) String() string {
	if r.File == "" {
		return r.Message
	}
	return fmt.Sprintf("%s:%d: %s", r.File, r.Line, r.Message)
}

// Refusals are the reasons in an API server's answer, with their places in the Go source of the module in the folder.
func Refusals(dir string, definition *unstructured.Unstructured, refused error) []Refusal {
	source := &source{dir: dir, files: token.NewFileSet(), packages: map[string]*goPackage{}}
	var all []Refusal
	for _, cause := range causes(refused) {
		message := cause.Message
		place := parseField(cause.Field)
		if strings.Contains(message, "rule compile error") {
			// A server may notice it first while it checks a default against the rule, and then complains about the default.
			place.keyword, place.quoted = validations, message
		}
		if len(place.within) > 0 && strings.HasPrefix(message, "Required value") {
			// A new field in a struct that defaults to {} is the usual case.
			message = fmt.Sprintf("%s: %s, and the default of %s does not set it: make the field optional, give it a default, or remove the default of %s",
				strings.Join(append(slices.Clone(place.properties), place.within...), "."), message, place.text(), place.text())
		} else if text := place.text(); text != "" {
			message = text + ": " + message
		} else if cause.Field != "" {
			message = cause.Field + ": " + message
		}
		refusal := Refusal{Path: place.text(), Message: message}
		if position := source.locate(definition, place); position.IsValid() {
			refusal.File, refusal.Line = source.relative(position.Filename), position.Line
		}
		if strings.Contains(cause.Field, approval) {
			refusal.Message += "; " + approvalAdvice(refusal.File != "")
		}
		if !slices.Contains(all, refusal) {
			all = append(all, refusal)
		}
	}
	return all
}

// approval is the annotation that API servers require of CRDs in groups that end in .k8s.io or .kubernetes.io.
// Manifests of apiextensions.k8s.io/v1beta1 did not need it, so old projects do not have it.
const approval = "api-approved.kubernetes.io"

// approvalAdvice returns how to add the annotation to a CRD, which is generated if its Go type was found.
func approvalAdvice(generated bool) string {
	if generated {
		return `add the marker // +kubebuilder:metadata:annotations="` + approval + `=unapproved", or another value if the API is approved`
	}
	return "add the annotation " + approval + ": unapproved, or another value if the API is approved"
}

func causes(refused error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if errors.As(refused, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		return status.Status().Details.Causes
	}
	return []metav1.StatusCause{{Message: refused.Error()}}
}

// source is the Go source of a module, as far as it has been read.
type source struct {
	dir      string
	files    *token.FileSet
	packages map[string]*goPackage // by folder
	listed   []string              // folders with Go files; nil before they have been looked for
}

// goPackage is a parsed folder.
type goPackage struct {
	folder string
	types  map[string]*goType
	// text has all comments and literals, to find the name of a group in.
	text string
}

// goType is the declaration of a type and the file that it is in.
type goType struct {
	spec *ast.TypeSpec
	doc  []*ast.Comment
	file *ast.File
}

func (s *source) relative(file string) string {
	if below, err := filepath.Rel(s.dir, file); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return file
}

// locate finds the field, or else the last one on the way to it that can be found, or else the type.
func (s *source) locate(definition *unstructured.Unstructured, at place) token.Position {
	home, kind := s.kind(definition, at.version)
	if kind == nil {
		return token.Position{}
	}
	best, doc := kind.spec.Pos(), kind.doc
	current, expression := home, kind.spec.Type
	complete := true
	for _, name := range at.properties {
		owner, field := s.field(current, expression, name, 0)
		if field == nil {
			complete = false
			break
		}
		best, doc = field.Pos(), comments(field.Doc, field.Comment)
		current, expression = owner, field.Type
	}
	marker := markerOf(doc, at)
	if marker == nil && complete {
		marker = markerOf(s.typeDoc(current, expression, 0), at)
	}
	if marker != nil {
		best = marker.Pos()
	}
	return s.files.Position(best)
}

// kind finds the type of the definition's kind: the one in a package that names the group, in a folder that is called
// like the version, as far as there is a choice.
func (s *source) kind(definition *unstructured.Unstructured, version int) (*goPackage, *goType) {
	kind := crdspec.Of(definition)
	versionName := ""
	if version < len(kind.Versions) {
		versionName = kind.Versions[version].Name
	}
	type candidate struct {
		home  *goPackage
		found *goType
		score int
	}
	var candidates []candidate
	for _, folder := range s.folders() {
		home := s.load(folder)
		found := home.types[kind.Kind]
		if found == nil {
			continue
		}
		if _, isStruct := found.spec.Type.(*ast.StructType); !isStruct {
			continue
		}
		score := 0
		if strings.Contains(home.text, kind.Group) {
			score += 2
		}
		if path.Base(filepath.ToSlash(folder)) == versionName {
			score++
		}
		candidates = append(candidates, candidate{home, found, score})
	}
	if len(candidates) == 0 {
		return nil, nil
	}
	best := slices.MaxFunc(candidates, func(a, b candidate) int {
		// Of equals, the first by path.
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(b.home.folder, a.home.folder))
	})
	return best.home, best.found
}

// folders returns the folders of the module with Go files.
func (s *source) folders() []string {
	if s.listed != nil {
		return s.listed
	}
	s.listed = []string{}
	// What cannot be read cannot be searched, and there may be enough left.
	_ = filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil //nolint:nilerr // see above
		}
		name := entry.Name()
		if path != s.dir && (name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			s.listed = append(s.listed, path)
		}
		return nil
	})
	return s.listed
}

func (s *source) load(folder string) *goPackage {
	if known := s.packages[folder]; known != nil {
		return known
	}
	one := &goPackage{folder: folder, types: map[string]*goType{}}
	s.packages[folder] = one
	files, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	var text strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_generated") {
			continue
		}
		// A file with errors has at least a beginning.
		parsed, _ := parser.ParseFile(s.files, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if parsed != nil {
			one.add(parsed, &text)
		}
	}
	one.text = text.String()
	return one
}

func (p *goPackage) add(file *ast.File, text *strings.Builder) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			text.WriteString(comment.Text + "\n")
		}
	}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		ast.Inspect(general, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text.WriteString(literal.Value + "\n")
			}
			return true
		})
		for _, spec := range general.Specs {
			if named, ok := spec.(*ast.TypeSpec); ok {
				p.types[named.Name.Name] = &goType{spec: named, doc: markersAbove(file, general, named), file: file}
			}
		}
	}
}

// markersAbove are the comments of a type, and those above them with an empty line in between, where markers stand too.
func markersAbove(file *ast.File, general *ast.GenDecl, named *ast.TypeSpec) []*ast.Comment {
	before := token.Pos(0)
	for _, declaration := range file.Decls {
		if declaration.End() < general.Pos() {
			before = declaration.End()
		}
	}
	var all []*ast.Comment
	for _, group := range file.Comments {
		if group.Pos() > before && group.End() < named.Pos() {
			all = append(all, group.List...)
		}
	}
	return all
}

func comments(groups ...*ast.CommentGroup) []*ast.Comment {
	var all []*ast.Comment
	for _, group := range groups {
		if group != nil {
			all = append(all, group.List...)
		}
	}
	return all
}
