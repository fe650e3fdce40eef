// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crdschema

import (
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const schema = `
type: object
properties:
  metadata: {type: object}
  spec:
    type: object
    required: [size]
    properties:
      size: {type: integer, maximum: 5, x-kubernetes-validations: [{rule: self >= oldSelf, message: must not shrink}]}
      mode: {type: string, default: fast}
      tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      child: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
    x-kubernetes-validations: [{rule: "self.mode != 'slow' || self.size < 3", message: slow ones must be small}]
`

func parse(t *testing.T, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	return props
}

func TestValidate(t *testing.T) {
	compiled, err := New(parse(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	object := func(spec map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "a"}, "spec": spec}
	}
	for name, test := range map[string]struct {
		spec, previous map[string]any
		want           string // part of the only error, or empty
	}{
		"valid":           {map[string]any{"size": int64(3)}, nil, ""},
		"by the schema":   {map[string]any{"size": int64(6)}, nil, "less than or equal to 5"},
		"by a rule":       {map[string]any{"size": int64(3), "mode": "slow"}, nil, "slow ones must be small"},
		"by a transition": {map[string]any{"size": int64(3)}, map[string]any{"size": int64(4), "mode": "fast"}, "must not shrink"},
		"no transition":   {map[string]any{"size": int64(4)}, map[string]any{"size": int64(3), "mode": "fast"}, ""},
		"by a list type":  {map[string]any{"size": int64(3), "tags": []any{"a", "a"}}, nil, "Duplicate value"},
		"by embedded metadata": {
			map[string]any{"size": int64(3), "child": map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a/b"}}},
			nil, "spec.child.metadata.name",
		},
		// What is required comes first: the API server does not evaluate rules on such an object.
		"required": {map[string]any{"mode": "slow"}, nil, "spec.size: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			value := object(test.spec)
			compiled.Default(value)
			var previous any
			if test.previous != nil {
				previous = object(test.previous)
			}
			errs := compiled.Validate(t.Context(), value, previous)
			if test.want == "" && len(errs) > 0 || test.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), test.want)) {
				t.Errorf("got %v, want %q", errs, test.want)
			}
		})
	}
}

func TestDefaultAndPrune(t *testing.T) {
	props := parse(t, schema)
	compiled, err := New(props)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{"kind": "A", "spec": map[string]any{"size": nil, "unknown": "x", "child": map[string]any{"any": "y"}}, "extra": "z"}
	if got, want := compiled.Prune(value), []string{"extra", "spec.unknown"}; !reflect.DeepEqual(got, want) {
		t.Errorf("pruned %q, want %q", got, want)
	}
	compiled.Default(value)
	want := map[string]any{"kind": "A", "spec": map[string]any{"mode": "fast", "child": map[string]any{"any": "y"}}}
	if !reflect.DeepEqual(value, want) {
		t.Errorf("got %v, want %v", value, want)
	}
	if !reflect.DeepEqual(props, parse(t, schema)) {
		t.Error("the schema was changed")
	}
}

func TestPartAndNoSchema(t *testing.T) {
	part, err := NewPart(parse(t, "{type: string, maxLength: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	if errs := part.Validate(t.Context(), "abc", nil); len(errs) != 1 {
		t.Errorf("got %v", errs)
	}
	open, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	value := map[string]any{"spec": map[string]any{"a": int64(1)}}
	if pruned := open.Prune(value); len(pruned) > 0 || len(open.Validate(t.Context(), value, nil)) > 0 {
		t.Errorf("without a schema everything is accepted; pruned %q", pruned)
	}
}
