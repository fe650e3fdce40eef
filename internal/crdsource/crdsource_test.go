// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crdsource

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/testenv"
)

var sources = map[string]string{
	"api/v1/groupversion_info.go": "// +groupName=sea.example.com\npackage v1\n",
	"api/v1/ship_types.go": `package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	shared "example.com/harbour/api/shared"
)

// +kubebuilder:validation:XValidation:rule="self.sunk"
type ShipSpec struct {
	// Size is how long it is.
	// +kubebuilder:default=many
	Size int32 ` + "`json:\"size\"`" + `

	Crew []Sailor ` + "`json:\"crew,omitempty\"`" + `

	Common ` + "`json:\",inline\"`" + `

	Cargo map[string]shared.Load ` + "`json:\"cargo,omitempty\"`" + `
}

type Common struct {
	// +kubebuilder:validation:XValidation:rule="true"
	// +kubebuilder:validation:XValidation:rule="self >"
	Flag string ` + "`json:\"flag\"`" + `
}

// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=.spec.size

// Ship floats.
type Ship struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	Spec *ShipSpec ` + "`json:\"spec,omitempty\"`" + `
}

// +kubebuilder:validation:XValidation:rule="self.drunk"
type Sailor struct {
	// +kubebuilder:validation:Pattern="("
	Name string ` + "`json:\"name\"`" + `
}
`,
	"api/shared/load.go": "package shared\n\ntype Load struct {\n\tTons int `json:\"tons\"`\n}\n",
	// Same kind, another group.
	"api/air/v1/ship_types.go": "// +groupName=air.example.com\npackage v1\n\ntype Ship struct{}\n",
}

func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	testenv.WriteFiles(t, dir, sources)
	return dir
}

func definition(group, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "names": map[string]any{"kind": kind}, "versions": []any{map[string]any{"name": "v1"}},
	}}}
}

func TestRefusals(t *testing.T) {
	dir := module(t)
	const schema = "spec.versions[0].schema.openAPIV3Schema."
	for field, expected := range map[string]struct{ file, line, path string }{
		schema + "properties[spec].properties[size].default":                                     {"api/v1/ship_types.go", "+kubebuilder:default=many", "spec.size"},
		schema + "properties[spec].properties[size].minimum":                                     {"api/v1/ship_types.go", "Size int32", "spec.size"},
		schema + "properties[spec].properties[crew].items.properties[name].pattern":              {"api/v1/ship_types.go", "Pattern=", "spec.crew.name"},
		schema + "properties[spec].properties[flag].x-kubernetes-validations[1].rule":            {"api/v1/ship_types.go", `"self >"`, "spec.flag"},
		schema + "properties[spec].properties[cargo].additionalProperties.properties[tons].type": {"api/shared/load.go", "Tons int", "spec.cargo.tons"},
		schema + "properties[spec].properties[unknown].type":                                     {"api/v1/ship_types.go", "Spec *ShipSpec", "spec.unknown"},
		schema + "properties[spec].x-kubernetes-validations[0].rule":                             {"api/v1/ship_types.go", `"self.sunk"`, "spec"},
		schema + "properties[spec].properties[crew].items.x-kubernetes-validations[0].rule":      {"api/v1/ship_types.go", `"self.drunk"`, "spec.crew"},
		"spec.validation.openAPIV3Schema.properties[spec].properties[size].default":              {"api/v1/ship_types.go", "+kubebuilder:default=many", "spec.size"},
		"spec.scope": {"api/v1/ship_types.go", "Ship struct", ""},
	} {
		refused := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Field: field, Message: "Invalid value"},
		}}}}
		all := Refusals(dir, definition("sea.example.com", "Ship"), refused)
		if len(all) != 1 {
			t.Fatalf("%s: %v", field, all)
		}
		got := all[0]
		line := ""
		if lines := strings.Split(sources[got.File], "\n"); got.Line > 0 && got.Line <= len(lines) {
			line = lines[got.Line-1]
		}
		if got.File != expected.file || !strings.Contains(line, expected.line) || got.Path != expected.path {
			t.Errorf("%s: %s, which is %q, about %q", field, got, line, got.Path)
		}
	}
}

func TestARuleThatDoesNotCompile(t *testing.T) {
	// This is how a server puts it if the field has a default.
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Field:   "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[flag].default",
		Message: "Invalid value: \"string\": rule compile error: compilation failed: ERROR: <input>:1:7: Syntax error\n | self >\n | ......^",
	}}}}}
	all := Refusals(module(t), definition("sea.example.com", "Ship"), refused)
	if len(all) != 1 || !strings.Contains(strings.Split(sources[all[0].File], "\n")[all[0].Line-1], `"self >"`) {
		t.Errorf("got %v", all)
	}
}

// Old projects in protected groups lack the annotation. The server's message has a link, and no way on.
func TestTheAnnotationOfProtectedGroups(t *testing.T) {
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Field: "metadata.annotations[api-approved.kubernetes.io]", Message: "Required value",
	}}}}}
	for kind, advice := range map[string]string{
		"Ship":  `add the marker // +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved"`,
		"Whale": "add the annotation api-approved.kubernetes.io: unapproved",
	} {
		all := Refusals(module(t), definition("sea.example.com", kind), refused)
		if len(all) != 1 || !strings.Contains(all[0].Message, advice) {
			t.Errorf("%s: got %v", kind, all)
		}
	}
}

// A required field in a struct whose default is {} is refused because of the default.
func TestDefaultsThatLackAField(t *testing.T) {
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
		Field: "spec.validation.openAPIV3Schema.properties[spec].default.crew", Message: "Required value",
	}}}}}
	all := Refusals(module(t), definition("sea.example.com", "Ship"), refused)
	want := "spec.crew: Required value, and the default of spec does not set it: make the field optional, give it a default, or remove the default of spec"
	if len(all) != 1 || all[0].Message != want || all[0].Path != "spec" || all[0].File != "api/v1/ship_types.go" {
		t.Errorf("got %+v", all)
	}
}

func TestTheGroupDecides(t *testing.T) {
	all := Refusals(module(t), definition("air.example.com", "Ship"), errors.New("no"))
	if expected := []Refusal{{File: "api/air/v1/ship_types.go", Line: 4, Message: "no"}}; !reflect.DeepEqual(all, expected) {
		t.Errorf("got %v", all)
	}
}

func TestWhatIsNotInTheSource(t *testing.T) {
	all := Refusals(module(t), definition("sea.example.com", "Whale"), errors.New("no"))
	if expected := []Refusal{{Message: "no"}}; !reflect.DeepEqual(all, expected) {
		t.Errorf("got %v", all)
	}
	if text := all[0].String(); text != "no" {
		t.Errorf("it is shown as %q", text)
	}
}

// Types that contain themselves have no end.
func TestTypesThatContainThemselves(t *testing.T) {
	dir := t.TempDir()
	source := "// +groupName=a.b\npackage v1\n\ntype Loop struct {\n\tLoop `json:\",inline\"`\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "loop.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
		{Field: "spec.versions[0].schema.openAPIV3Schema.properties[spec].type", Message: "no"},
	}}}}
	if all := Refusals(dir, definition("a.b", "Loop"), refused); all[0].Line != 4 {
		t.Errorf("got %v", all)
	}
}
