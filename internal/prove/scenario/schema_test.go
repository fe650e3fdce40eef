// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/golden"
)

func crdOf(t *testing.T, schema string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(schema), &fields); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "frigates.sea.example.com"},
		"spec": map[string]any{
			"group": "sea.example.com", "names": map[string]any{"kind": "Frigate", "plural": "frigates"},
			"versions": []any{
				map[string]any{"name": "v1beta1", "served": true},
				map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": fields}},
			},
		},
	}}
}

// problems validates an object as the API server does, but for rules in CEL.
func problems(t *testing.T, crd, object *unstructured.Unstructured) field.ErrorList {
	t.Helper()
	var typed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &typed); err != nil {
		t.Fatal(err)
	}
	version := object.GroupVersionKind().Version
	at := slices.IndexFunc(typed.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	var schema apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(typed.Spec.Versions[at].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		t.Fatal(err)
	}
	return validation.ValidateCustomResource(nil, object.Object, validator)
}

// The fleet's own CRDs, and a schema with everything that a value can be limited by.
func TestFromSchemaIsValid(t *testing.T) {
	crds := map[string]*unstructured.Unstructured{"limits": crdOf(t, limits)}
	files, err := filepath.Glob("../../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &crd.Object); err != nil {
			t.Fatal(err)
		}
		crds[filepath.Base(file)] = crd
	}
	for name, crd := range crds {
		made, err := FromSchemas([]*unstructured.Unstructured{crd})
		if strings.HasSuffix(name, "_kapps.yaml") {
			// Its components are custom resources themselves, about which the schema says nothing.
			if err == nil || !strings.Contains(err.Error(), "write a sample by hand") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, text := made.Scenario, made.Text
		object := s.Steps[0].Apply.Objects[0]
		if found := problems(t, crd, object); len(found) > 0 {
			t.Errorf("%s: %v\n%s", name, found, text)
		}
		changed := object.DeepCopy()
		merge(changed.Object, s.Steps[1].Patch[0].Merge)
		if found := problems(t, crd, changed); len(found) > 0 {
			t.Errorf("%s: the change is refused: %v\n%s", name, found, text)
		}
	}
}

const limits = `
type: object
required: [spec]
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  status: {type: object, required: [phase], properties: {phase: {type: string}}}
  spec:
    type: object
    required: [addresses, at, code, color, embedded, exact, flag, fraction, image, keyed, labels, level, list, mode, name, negative, port, rule, span, tag, token, tuple, wait]
    x-kubernetes-validations: [{rule: 'has(self.left) != has(self.right)'}]
    properties:
      replicas: {type: integer, minimum: 1, maximum: 1}
      size: {type: integer, minimum: 3}
      left: {type: string}
      right: {type: string}
      optional: {type: string}
      addresses: {type: array, minItems: 2, x-kubernetes-list-type: set, items: {type: string}}
      at: {type: string, format: date-time}
      code: {type: string, pattern: '^[A-Z]{2,4}-[0-9]+$', minLength: 8}
      color: {type: string, enum: ["", red, blue]}
      embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      exact: {type: integer, multipleOf: 5, minimum: 11}
      flag: {type: boolean}
      fraction: {type: number, maximum: 0.5}
      image: {type: string}
      keyed:
        type: array
        minItems: 3
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items: {type: object, required: [name], properties: {name: {type: string}, port: {type: integer}}}
      labels: {type: object, minProperties: 1, additionalProperties: {type: string, maxLength: 3}}
      level: {type: integer, enum: [4, 5]}
      list: {type: array, items: {type: string}}
      mode: {type: string, default: fast}
      name: {type: string, minLength: 12}
      negative: {type: integer, maximum: -3}
      port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
      rule: {type: object, properties: {deep: {type: object, required: [x], properties: {x: {type: string}}}}, minProperties: 1}
      span: {type: string, format: duration}
      tag: {type: string, maxLength: 1}
      token: {type: string, format: uuid}
      tuple: {type: array, minItems: 2, items: {type: integer, minimum: 9}}
      wait: {type: string, pattern: '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'}
`

func TestFromSchemaGolden(t *testing.T) {
	made, err := FromSchemas([]*unstructured.Unstructured{crdOf(t, limits)})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "from-schema.yaml", string(made.Text))
}

func TestFromSchemaOfSomethingElse(t *testing.T) {
	for want, object := range map[string]map[string]any{
		`ConfigMap "a" is not a CRD`: {"kind": "ConfigMap", "metadata": map[string]any{"name": "a"}},
		`CRD a serves no version with a schema`: {"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"group": "g", "names": map[string]any{"kind": "K"}, "versions": []any{map[string]any{"name": "v1"}}}},
	} {
		if _, err := FromSchemas([]*unstructured.Unstructured{{Object: object}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	impossible := crdOf(t, `{type: object, properties: {spec: {type: object, x-kubernetes-validations: [{rule: "false"}]}}}`)
	if _, err := FromSchemas([]*unstructured.Unstructured{impossible}); err == nil || !strings.Contains(err.Error(), "write a sample by hand") {
		t.Errorf("a schema that nothing satisfies: %v", err)
	}
}

// TestSuggestionForSeveralKinds has a kind for which nothing can be made up: the others are there, and it is named.
func TestSuggestionForSeveralKinds(t *testing.T) {
	brig := crdOf(t, `{type: object, properties: {spec: {type: object, required: [guns], properties: {guns: {type: integer, maximum: 1}}}}}`)
	brig.SetName("brigs.sea.example.com")
	if err := unstructured.SetNestedField(brig.Object, "Brig", "spec", "names", "kind"); err != nil {
		t.Fatal(err)
	}
	impossible := crdOf(t, `{type: object, properties: {spec: {type: object, x-kubernetes-validations: [{rule: "false"}]}}}`)
	if err := unstructured.SetNestedField(impossible.Object, "Sloop", "spec", "names", "kind"); err != nil {
		t.Fatal(err)
	}
	made, err := FromSchemas([]*unstructured.Unstructured{impossible, brig, crdOf(t, `{type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}}}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Missing) != 1 || !strings.Contains(made.Missing[0].Error(), "Sloop") {
		t.Errorf("missing is %v", made.Missing)
	}
	golden.Compare(t, "from-schemas.yaml", string(made.Text))
}

// TestSuggestionFromSamples has the one change that the schema allows, since a file has no second choice.
func TestSuggestionFromSamples(t *testing.T) {
	crd := crdOf(t, `{type: object, properties: {spec: {type: object, properties: {replicas: {type: integer, maximum: 3}, guns: {type: integer}}}}}`)
	sample := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Frigate", "metadata": map[string]any{"name": "victory"},
		"spec": map[string]any{"replicas": int64(3), "guns": int64(104)},
	}}
	made, err := FromSamples([]*unstructured.Unstructured{sample}, []*unstructured.Unstructured{crd})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "from-samples.yaml", string(made.Text))
}
