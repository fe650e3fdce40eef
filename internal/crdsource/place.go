// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crdsource

import (
	"go/ast"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// place is what a field path of an API server's answer means.
type place struct {
	version    int      // index of the version in the CRD
	properties []string // names on the way from the object to the field; items and values of maps have none
	keyword    string   // of the schema, such as default or pattern; empty if it is about all of it
	index      int      // of the keyword's element
	within     []string // names from the field into its default, if the default is an object
	quoted     string   // a text that repeats the marker's; empty if there is none
}

// validations is the keyword of rules.
const validations = "x-kubernetes-validations"

func (p place) text() string { return strings.Join(p.properties, ".") }

var (
	versionIndex = regexp.MustCompile(`^spec\.versions\[(\d+)\]`)
	pathElement  = regexp.MustCompile(`properties\[([^\]]+)\]|([A-Za-z-]+)(?:\[(\d+)\])?`)
)

// parseField understands paths like spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].default.
func parseField(field string) place {
	var at place
	if match := versionIndex.FindStringSubmatch(field); match != nil {
		at.version, _ = strconv.Atoi(match[1]) // digits, by the expression
	}
	_, inSchema, isSchema := strings.Cut(field, "openAPIV3Schema")
	if !isSchema {
		return at
	}
	for _, match := range pathElement.FindAllStringSubmatch(inSchema, -1) {
		switch name := match[2]; {
		case at.keyword == "default" && match[1] == "":
			at.within = append(at.within, name)
		case match[1] != "":
			at.properties, at.keyword = append(at.properties, match[1]), ""
		case name == "items" || name == "additionalProperties" || name == "allOf" || name == "Schema":
		case at.keyword == "":
			at.keyword = name
			at.index, _ = strconv.Atoi(match[3]) // 0 if there is none
		}
	}
	return at
}

// markers are the names of markers whose keyword in the schema is another word.
var markers = map[string]string{
	validations: "XValidation", "x-kubernetes-list-type": "listType", "x-kubernetes-list-map-keys": "listMapKey",
	"x-kubernetes-map-type": "mapType", "x-kubernetes-int-or-string": "XIntOrString",
	"x-kubernetes-preserve-unknown-fields": "PreserveUnknownFields", "x-kubernetes-embedded-resource": "EmbeddedResource",
}

// markerOf is the marker that the place's keyword comes from, or nil.
func markerOf(doc []*ast.Comment, at place) *ast.Comment {
	if at.keyword == "" {
		return nil
	}
	word := at.keyword
	if other, known := markers[word]; known {
		word = other
	}
	var found []*ast.Comment
	for _, comment := range doc {
		text, isComment := strings.CutPrefix(comment.Text, "//")
		name, _, _ := strings.Cut(strings.TrimSpace(text), "=")
		if !isComment || !strings.HasPrefix(name, "+") {
			continue
		}
		parts := strings.Split(strings.TrimPrefix(name, "+"), ":")
		for _, part := range parts {
			if strings.EqualFold(part, word) {
				found = append(found, comment)
				break
			}
		}
	}
	if i := slices.IndexFunc(found, at.quotes); i >= 0 {
		return found[i]
	}
	switch {
	case len(found) == 0:
		return nil
	case at.index < len(found):
		return found[at.index]
	default:
		return found[0]
	}
}

// ruleText finds the rule of a marker, in either kind of quotes.
var ruleText = regexp.MustCompile("rule=(?:\"((?:[^\"\\\\]|\\\\.)*)\"|`([^`]*)`)")

// quotes reports whether the marker's rule is the one that the message repeats.
func (p place) quotes(marker *ast.Comment) bool {
	match := ruleText.FindStringSubmatch(marker.Text)
	if p.quoted == "" || match == nil {
		return false
	}
	rule := match[2]
	if match[1] != "" {
		rule = strings.ReplaceAll(match[1], `\"`, `"`)
	}
	return strings.Contains(p.quoted, "| "+rule+"\n")
}

// maxEmbedding ends the search in types that embed each other.
const maxEmbedding = 20

// field finds the field of a JSON name in a type, and the package that it is declared in.
func (s *source) field(home *goPackage, expression ast.Expr, name string, depth int) (*goPackage, *ast.Field) {
	home, fields := s.structure(home, expression, depth)
	if fields == nil || depth > maxEmbedding {
		return nil, nil
	}
	for _, field := range fields.Fields.List {
		if jsonName(field) == name {
			return home, field
		}
	}
	for _, field := range fields.Fields.List {
		if len(field.Names) > 0 && !isInline(field) {
			continue
		}
		if owner, found := s.field(home, field.Type, name, depth+1); found != nil {
			return owner, found
		}
	}
	return nil, nil
}

// typeDoc is what stands above the types that an expression names: a field has the markers of its type as well.
func (s *source) typeDoc(home *goPackage, expression ast.Expr, depth int) []*ast.Comment {
	if depth > maxEmbedding {
		return nil
	}
	switch one := expression.(type) {
	case *ast.StarExpr:
		return s.typeDoc(home, one.X, depth+1)
	case *ast.ParenExpr:
		return s.typeDoc(home, one.X, depth+1)
	case *ast.ArrayType:
		return s.typeDoc(home, one.Elt, depth+1)
	case *ast.MapType:
		return s.typeDoc(home, one.Value, depth+1)
	case *ast.Ident:
		if named := home.types[one.Name]; named != nil {
			return append(slices.Clone(named.doc), s.typeDoc(home, named.spec.Type, depth+1)...)
		}
	case *ast.SelectorExpr:
		if qualifier, ok := one.X.(*ast.Ident); ok {
			if other := s.imported(home, one, qualifier.Name); other != nil {
				return s.typeDoc(other, one.Sel, depth+1)
			}
		}
	}
	return nil
}

// structure follows names, pointers, lists and maps to a struct.
func (s *source) structure(home *goPackage, expression ast.Expr, depth int) (*goPackage, *ast.StructType) {
	if depth > maxEmbedding {
		return nil, nil
	}
	switch one := expression.(type) {
	case *ast.StructType:
		return home, one
	case *ast.StarExpr:
		return s.structure(home, one.X, depth+1)
	case *ast.ParenExpr:
		return s.structure(home, one.X, depth+1)
	case *ast.ArrayType:
		return s.structure(home, one.Elt, depth+1)
	case *ast.MapType:
		return s.structure(home, one.Value, depth+1)
	case *ast.Ident:
		if named := home.types[one.Name]; named != nil {
			return s.structure(home, named.spec.Type, depth+1)
		}
	case *ast.SelectorExpr:
		qualifier, ok := one.X.(*ast.Ident)
		if !ok {
			return nil, nil
		}
		other := s.imported(home, one, qualifier.Name)
		if other == nil {
			return nil, nil
		}
		return s.structure(other, one.Sel, depth+1)
	}
	return nil, nil
}

// imported is the package of the same module that a file calls by the name.
func (s *source) imported(home *goPackage, use ast.Node, name string) *goPackage {
	for _, named := range home.types {
		if use.Pos() < named.file.FileStart || use.Pos() > named.file.FileEnd {
			continue
		}
		for _, one := range named.file.Imports {
			importPath, err := strconv.Unquote(one.Path.Value)
			if err != nil || one.Name != nil && one.Name.Name != name {
				continue
			}
			if one.Name == nil && !strings.HasSuffix(importPath, "/"+name) {
				continue
			}
			for _, folder := range s.folders() {
				// The module's path is not known here; the longest end that is a folder of it is.
				if below := filepath.ToSlash(s.relative(folder)); below != "." && strings.HasSuffix(importPath, "/"+below) {
					return s.load(folder)
				}
			}
		}
		return nil
	}
	return nil
}

func jsonName(field *ast.Field) string {
	name, _, _ := strings.Cut(jsonTag(field), ",")
	return name
}

func isInline(field *ast.Field) bool {
	_, options, _ := strings.Cut(jsonTag(field), ",")
	return strings.Contains(options, "inline")
}

func jsonTag(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(tag).Get("json")
}
