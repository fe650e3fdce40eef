// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
		s := Default([]*unstructured.Unstructured{frigate(test.spec)})
		patch := s.Steps[1].Patch[0]
		if diff := cmp.Diff(test.want, append([]map[string]any{patch.Merge}, patch.Fallbacks...)); diff != "" {
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
	s := Default(samples)
	if len(s.Steps) != 3 || s.Steps[0].Apply == nil || len(s.Steps[1].Patch) != 2 || !s.Steps[2].Delete.All {
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
