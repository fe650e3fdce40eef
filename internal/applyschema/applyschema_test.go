// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package applyschema

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const toolCRD = `
metadata: {name: tools.example.com}
spec:
  group: example.com
  names: {kind: Tool}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        description: A tool.
        properties:
          metadata: {type: object}
          spec:
            type: object
            required: [size]
            properties:
              size: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true, default: 1}
              since: {type: string, format: date-time, maxLength: 99}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name, side]
                items: {type: object, properties: {name: {type: string}, side: {type: string, default: left}}}
              selector: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
              object: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  - name: v1old
`

const toolDefinition = `
type: object
x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Tool}]
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {$ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
  spec:
    type: object
    properties:
      size: {type: string, format: int-or-string, default: 1}
      since: {type: string, format: date-time}
      parts:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name, side]
        items: {type: object, properties: {name: {type: string}, side: {type: string, default: left}}}
      selector: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}
      object:
        type: object
        x-kubernetes-preserve-unknown-fields: true
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {$ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
`

func TestDocument(t *testing.T) {
	raw, err := Document([]*apiextensionsv1.CustomResourceDefinition{tool(t)}, GoPackages{
		{Group: "example.com", Version: "v1"}: "code.example.org/tools/api/v1",
	})
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Definitions map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	var want any
	if err := yaml.Unmarshal([]byte(toolDefinition), &want); err != nil {
		t.Fatal(err)
	}
	const model = "org.example.code.tools.api.v1.Tool"
	if got := document.Definitions[model]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	// Nothing refers to a definition that is not there.
	for _, reference := range strings.Split(string(raw), `"$ref": "#/definitions/`)[1:] {
		name, _, _ := strings.Cut(reference, `"`)
		if document.Definitions[name] == nil {
			t.Errorf("there is no definition of %s", name)
		}
	}
}

func TestDocumentOfAKindWithoutSchema(t *testing.T) {
	_, err := Document([]*apiextensionsv1.CustomResourceDefinition{tool(t)}, GoPackages{
		{Group: "example.com", Version: "v1old"}: "code.example.org/tools/api/v1old",
	})
	if err == nil || err.Error() != "tools.example.com has no schema for version v1old" {
		t.Errorf("got %v", err)
	}
}

func tool(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict([]byte(toolCRD), crd); err != nil {
		t.Fatal(err)
	}
	return crd
}
