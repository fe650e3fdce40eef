// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"encoding/json"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func frigate(spec any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Frigate", "metadata": map[string]any{"name": "ship", "namespace": "fleet"},
	}}
	if spec != "none" {
		object.Object["spec"] = spec
	}
	return object
}

func TestDefaultChange(t *testing.T) {
	type fields = map[string]any
	note := fields{"metadata": fields{"annotations": fields{ChangedAnnotation: "true"}}}
	for name, test := range map[string]struct {
		spec any
		want []map[string]any
	}{
		"no spec":       {"none", []map[string]any{note}},
		"an empty spec": {nil, []map[string]any{note}},
		"no integers":   {fields{"image": "a", "ports": []any{int64(80)}, "share": 0.5}, []map[string]any{note}},
		"replicas before all others": {
			fields{"age": int64(7), "count": int64(1), "replicas": int64(2), "size": int64(3)},
			[]map[string]any{{"spec": fields{"replicas": int64(3)}}, {"spec": fields{"size": int64(4)}}, {"spec": fields{"count": int64(2)}}, {"spec": fields{"age": int64(8)}}, note},
		},
		"nested, and names that end so": {
			fields{"web": fields{"replicas": 2.0}, "podReplicas": int64(1), "port": int64(80), "weight": int64(4)},
			[]map[string]any{{"spec": fields{"web": fields{"replicas": int64(3)}}}, {"spec": fields{"podReplicas": int64(2)}}, {"spec": fields{"weight": int64(5)}}, {"spec": fields{"port": int64(81)}}, note},
		},
		"many": {
			fields{"a": int64(1), "b": int64(1), "c": int64(1), "d": int64(1), "e": int64(1), "f": int64(1), "g": int64(1)},
			[]map[string]any{{"spec": fields{"a": int64(2)}}, {"spec": fields{"b": int64(2)}}, {"spec": fields{"c": int64(2)}}, {"spec": fields{"d": int64(2)}}, {"spec": fields{"e": int64(2)}}, {"spec": fields{"f": int64(2)}}, note},
		},
	} {
		s := Default([]*unstructured.Unstructured{frigate(test.spec)}, nil)
		patch := s.Steps[1].Patch[0]
		if diff := gocmp.Diff(test.want, append([]map[string]any{patch.Merge}, patch.Fallbacks...)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if want := (Ref{"sea.example.com/v1", "Frigate", "fleet", "ship"}); patch.Ref != want || patch.String() != "Frigate fleet/ship" {
			t.Errorf("%s: %s", name, patch.Ref)
		}
	}
}

func TestDefaultSteps(t *testing.T) {
	second := frigate(nil)
	second.SetName("boat")
	samples := []*unstructured.Unstructured{frigate(map[string]any{"size": int64(1)}), second}
	s := Default(samples, nil)
	if len(s.Steps) != 4 || s.Steps[0].Apply == nil || len(s.Steps[1].Patch) != 2 || len(s.Steps[2].Patch) != 2 || !s.Steps[3].Delete.All {
		t.Fatalf("%+v", s.Steps)
	}
	objects := s.Steps[0].Apply.Objects
	if objects[0].GetName() != "ship" || objects[1].GetName() != "boat" {
		t.Error("the order of the samples is lost")
	}
	if _, ok := objects[1].Object["spec"].(map[string]any); !ok || second.Object["spec"] != nil {
		t.Error("a spec without a value is not made empty, or the sample is changed")
	}
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("s.yaml", text, nil); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}

// A sample that counts nothing changes as its schema suggests. What the API server may refuse has fallbacks.
func TestDefaultChangeOfASchema(t *testing.T) {
	for name, test := range map[string]struct {
		schema string
		spec   map[string]any
		want   string
	}{
		"replicas that have a default": {"{replicas: {type: integer, default: 1}}", map[string]any{}, `{"spec":{"replicas":3}}`},
		"an image":                     {"{image: {type: string}, port: {type: integer}}", map[string]any{"image": "web:1.2", "port": int64(80)}, `{"spec":{"image":"web:1.3"}}`},
		"a switch":                     {"{metrics: {type: object, properties: {enabled: {type: boolean}}}}", map[string]any{"metrics": map[string]any{"enabled": false}}, `{"spec":{"metrics":{"enabled":true}}}`},
		"a switch that pauses":         {"{suspend: {type: boolean}, image: {type: string}}", map[string]any{"suspend": false, "image": "web:1.2"}, `{"spec":{"image":"web:1.3"}}`},
		"only a switch that pauses":    {"{paused: {type: boolean}}", map[string]any{"paused": false}, `{"metadata":{"annotations":{"opdock.dev/changed":"true"}}}`},
		"what goes with a switch":      {"{metrics: {type: object, required: [enabled], properties: {enabled: {type: boolean}}}}", map[string]any{}, `{"spec":{"metrics":{"enabled":true}}}`},
		"a list as a whole":            {"{parts: {type: array, items: {type: object, properties: {on: {type: boolean}}}}}", map[string]any{"parts": []any{map[string]any{"on": true}}}, `{"spec":{"parts":[{"on":true},{}]}}`},
		"another kind":                 {"", map[string]any{"image": "web:1.2"}, `{"metadata":{"annotations":{"opdock.dev/changed":"true"}}}`},
		"replicas of the sample":       {"{replicas: {type: integer}, image: {type: string}}", map[string]any{"replicas": int64(2), "image": "web:1.2"}, `{"spec":{"replicas":3}}`},
	} {
		crd := crdOf(t, "{type: object, properties: {spec: {type: object, properties: "+cmp.Or(test.schema, "{}")+"}}}")
		if test.schema == "" {
			crd.Object["spec"].(map[string]any)["group"] = "land.example.com"
		}
		s := Default([]*unstructured.Unstructured{frigate(test.spec)}, []*unstructured.Unstructured{crd})
		if got := asJSON(t, s.Steps[1].Patch[0].Merge); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

// Whichever change the API server accepts is taken back.
func TestDefaultChangeBack(t *testing.T) {
	crd := crdOf(t, "{type: object, properties: {spec: {type: object, properties: {image: {type: string}, port: {type: integer}, metrics: {type: object, properties: {enabled: {type: boolean}}}}}}}")
	sample := frigate(map[string]any{"image": "web:1.2", "port": int64(80)})
	s := Default([]*unstructured.Unstructured{sample}, []*unstructured.Unstructured{crd})
	there, back := s.Steps[1].Patch[0], s.Steps[2].Patch[0]
	if len(there.Fallbacks) < 3 {
		t.Fatalf("too few fallbacks: %v", there.Fallbacks)
	}
	kept := sample.DeepCopy()
	kept.SetAnnotations(map[string]string{"example.com/by-the-operator": "yes"})
	for _, one := range append([]map[string]any{there.Merge}, there.Fallbacks...) {
		for _, before := range []*unstructured.Unstructured{sample, kept} {
			after := before.DeepCopy()
			patched(after.Object, one)
			patched(after.Object, back.Merge)
			if len(after.GetAnnotations()) == 0 {
				after.SetAnnotations(nil)
			}
			if diff := gocmp.Diff(before.Object, after.Object); diff != "" {
				t.Errorf("after %s and back: %s", asJSON(t, one), diff)
			}
		}
	}
	if got := asJSON(t, back.Fallbacks); got != `[{"metadata":{"annotations":{"opdock.dev/changed":null}}}]` {
		t.Errorf("the fallback is %s", got)
	}
}

// patched changes an object as the API server does.
func patched(fields, patch map[string]any) {
	for name, value := range patch {
		inner, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(fields, name)
		case isMap:
			if _, there := fields[name].(map[string]any); !there {
				fields[name] = map[string]any{}
			}
			patched(fields[name].(map[string]any), inner)
		default:
			fields[name] = value
		}
	}
}
