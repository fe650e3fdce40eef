// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// field is a field of an API type, as its source says.
type field struct {
	where   string // file:line: Type.Field
	owner   string // the struct that it is in
	goName  string
	json    string
	omits   bool // omitempty
	inline  bool
	doc     string
	markers map[string]string
	kind    ast.Expr
}

// optionalValues are optional fields of struct types for which a pointer would be worse.
var optionalValues = map[string]bool{"ObjectMeta": true, "ListMeta": true, "Status": true}

// unboundedStrings are strings without MaxLength, each with the reason.
var unboundedStrings = map[string]string{
	"EnvVar.Value": "a pod takes any length, and so must the template of one; the size of the whole object is the limit",
}

var (
	lowerCamelCase = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)
	pascalCase     = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*$`)
)

// The conventions of Kubernetes APIs as far as a program can check them, which the API server does not do itself.
func TestGoTypesFollowTheConventions(t *testing.T) {
	fields, structs := apiFields(t)
	if len(fields) < 100 {
		t.Fatalf("there are only %d fields; the test looks in the wrong place", len(fields))
	}
	for _, f := range fields {
		for _, complaint := range complaints(f, structs) {
			t.Errorf("%s %s", f.where, complaint)
		}
	}
}

func complaints(f field, structs map[string]bool) []string {
	if f.inline || f.goName == "Items" && f.json == "items" || f.goName == "ListMeta" {
		return nil
	}
	var found []string
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if !lowerCamelCase.MatchString(f.json) {
		complain("has the JSON name %q, which is not in lower camel case", f.json)
	}
	if !strings.HasPrefix(f.doc, f.json+" ") {
		complain("has a description that does not start with %s: %q", f.json, f.doc)
	}
	_, optional := f.markers["optional"]
	_, required := f.markers["required"]
	_, hasDefault := f.markers["kubebuilder:default"]
	if optional == required {
		complain("must be marked either +optional or +required")
	}
	if required && f.omits {
		complain("is required but omitted when empty")
	}
	// With a default that is the zero value, leaving it out and writing it are the same.
	if optional && !f.omits && !hasDefault {
		complain("is optional but not omitted when empty")
	}
	found = append(found, meaningComplaints(f)...)
	switch kind := f.kind.(type) {
	case *ast.ArrayType:
		list, typed := f.markers["listType"]
		_, keyed := f.markers["listMapKey"]
		if !typed {
			complain("is a list without +listType")
		}
		if (list == "map") != keyed {
			complain("is a list of type %q, listMapKey given: %t", list, keyed)
		}
		if _, bounded := f.markers["kubebuilder:validation:MaxItems"]; !bounded {
			complain("is a list without MaxItems")
		}
	case *ast.MapType:
		if _, bounded := f.markers["kubebuilder:validation:MaxProperties"]; !bounded {
			complain("is a map without MaxProperties")
		}
	case *ast.StarExpr:
		if required {
			complain("is required, so it should not be a pointer")
		}
	case *ast.SelectorExpr:
		if pkg, ok := kind.X.(*ast.Ident); ok && pkg.Name == "sharedv1" && optional && structs["../shared/v1."+kind.Sel.Name] {
			complain("is an optional struct, so it should be a pointer")
		}
	case *ast.Ident:
		switch {
		case strings.HasPrefix(kind.Name, "float"):
			complain("is a floating point number, which not all languages read back as they wrote it")
		case kind.Name == "int" || strings.HasPrefix(kind.Name, "uint"):
			complain("must be an int32 or int64")
		case optional && structs[filepath.Dir(f.where)+"."+kind.Name] && !optionalValues[f.goName]:
			complain("is an optional struct, so it should be a pointer")
		}
	}
	return found
}

// meaningComplaints are about what a field is for and which values it takes.
func meaningComplaints(f field) []string {
	var found []string
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if f.json == "phase" {
		complain("is a phase, which cannot grow without breaking who reads it; conditions can")
	}
	if strings.HasSuffix(strings.ToLower(f.json), "timestamp") {
		complain("is called %s; times are called somethingTime", f.json)
	}
	if _, required := f.markers["required"]; required && isStatus(f.owner) {
		complain("is a required field of a status, so that no part of it could be written alone")
	}
	values, isEnum := f.markers["kubebuilder:validation:Enum"]
	for value := range strings.SplitSeq(values, ";") {
		// The empty value is what some enums of corev1 call their default.
		if isEnum && value != `""` && !pascalCase.MatchString(value) {
			complain("takes the value %s, which is not in Pascal case", value)
		}
	}
	_, hasLength := f.markers["kubebuilder:validation:MaxLength"]
	_, hasFormat := f.markers["kubebuilder:validation:Format"]
	bounded := hasLength || hasFormat || isEnum
	if isString(f.kind) && !bounded && unboundedStrings[f.owner+"."+f.goName] == "" {
		complain("is a string without MaxLength")
	}
	return found
}

// isStatus reports whether a struct is the status of a kind. ComponentStatus and the like are elements of a list in it,
// whose keys are required.
func isStatus(structName string) bool {
	kind, is := strings.CutSuffix(structName, "Status")
	for name := range resources {
		if is && strings.HasSuffix(name, " "+kind) {
			return true
		}
	}
	return false
}

func isString(kind ast.Expr) bool {
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	ident, ok := kind.(*ast.Ident)
	return ok && ident.Name == "string"
}

func TestStatusesFollowTheConventions(t *testing.T) {
	for _, path := range crdFiles(t) {
		crd := mustRead(t, path)[0]
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, version := range versions {
			version := version.(map[string]any)
			where := fmt.Sprintf("%s %s", crd.GetName(), version["name"])
			if _, has, _ := unstructured.NestedMap(version, "subresources", "status"); !has {
				t.Errorf("%s has no status subresource", where)
			}
			status, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "status", "properties")
			if kind, _, _ := unstructured.NestedString(status, "observedGeneration", "type"); kind != "integer" {
				t.Errorf("%s has no observedGeneration", where)
			}
			keys, _, _ := unstructured.NestedSlice(status, "conditions", "x-kubernetes-list-map-keys")
			if !reflect.DeepEqual(keys, []any{"type"}) {
				t.Errorf("%s has conditions with the keys %v", where, keys)
			}
			columns, _, _ := unstructured.NestedSlice(version, "additionalPrinterColumns")
			if len(columns) == 0 || columns[0].(map[string]any)["name"] != "Ready" || columns[len(columns)-1].(map[string]any)["name"] != "Age" {
				t.Errorf("%s must show Ready first and Age last", where)
			}
		}
	}
}

// apiFields returns all exported fields of the API types, and of all types that are structs their
// folder and name.
func apiFields(t *testing.T) ([]field, map[string]bool) {
	t.Helper()
	var found []field
	structs := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "zz_generated") {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, isType := node.(*ast.TypeSpec)
			if !isType {
				return true
			}
			structType, isStruct := spec.Type.(*ast.StructType)
			if !isStruct {
				return true
			}
			structs[filepath.Dir(path)+"."+spec.Name.Name] = true
			for _, f := range structType.Fields.List {
				found = append(found, describe(files, spec.Name.Name, f))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, structs
}

func describe(files *token.FileSet, owner string, f *ast.Field) field {
	name := ""
	if len(f.Names) > 0 {
		name = f.Names[0].Name
	} else if selector, ok := f.Type.(*ast.SelectorExpr); ok {
		name = selector.Sel.Name
	} else if ident, ok := f.Type.(*ast.Ident); ok {
		name = ident.Name
	}
	result := field{
		where:   fmt.Sprintf("%s: %s.%s", files.Position(f.Pos()), owner, name),
		owner:   owner,
		goName:  name,
		markers: map[string]string{},
		kind:    f.Type,
	}
	if f.Tag != nil {
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json")
		parts := strings.Split(tag, ",")
		result.json = parts[0]
		for _, part := range parts[1:] {
			result.omits = result.omits || part == "omitempty"
			result.inline = result.inline || part == "inline"
		}
	}
	if f.Doc != nil {
		for _, comment := range f.Doc.List {
			line := strings.TrimSpace(strings.TrimPrefix(comment.Text, "//"))
			if marker, isMarker := strings.CutPrefix(line, "+"); isMarker {
				key, value, _ := strings.Cut(marker, "=")
				result.markers[key] = value
			} else if line != "" {
				result.doc = strings.TrimSpace(result.doc + " " + line)
			}
		}
	}
	return result
}
