// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// read reads an object as clusters have it.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return &object
}

const managed = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: victory
  labels: {app: victory}
  managedFields:
  - {manager: frigate-controller, operation: Apply, fieldsType: FieldsV1, fieldsV1: %s}
  - {manager: kube-controller-manager, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:minReadySeconds": {}}}}
  - {manager: frigate-controller, operation: Update, subresource: status, fieldsType: FieldsV1, fieldsV1: {"f:status": {"f:replicas": {}}}}
  - {manager: opdock-prove, operation: Update, fieldsType: FieldsV1, fieldsV1: {"f:spec": {"f:progressDeadlineSeconds": {}}}}
spec:
  replicas: 2
  paused: true
  minReadySeconds: 5
  progressDeadlineSeconds: 6
  type: Fast
  affinity: ClientIP
  selector: {matchLabels: {app: victory}}
  template:
    spec:
      containers:
      - {name: side, image: "side:1"}
      - {name: main, image: "nginx:1.29", ports: [{containerPort: 80, protocol: TCP, hostPort: 8080}]}
status: {replicas: 2}
`

func TestEditsChangeWhatTheOperatorHasSet(t *testing.T) {
	for name, test := range map[string]struct {
		fields string
		want   []string
	}{
		"a number":                     {`{"f:spec": {"f:replicas": {}}}`, []string{"spec.replicas=3"}},
		"a switch":                     {`{"f:spec": {"f:paused": {}}}`, []string{"spec.paused=false"}},
		"a text in a list":             {`{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}, "f:name": {}}}}}}}`, []string{"spec.template.spec.containers.1.image=nginx:1.29x"}},
		"a key of two fields":          {`{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {"f:hostPort": {}, "f:containerPort": {}}}}}}}}}`, []string{"spec.template.spec.containers.1.ports.0.hostPort=8081"}},
		"nothing of the system":        {`{"f:metadata": {"f:labels": {"f:app": {}}}, "f:status": {"f:replicas": {}}}`, nil},
		"no selector":                  {`{"f:spec": {"f:selector": {"f:matchLabels": {"f:app": {}}}}}`, nil},
		"nothing of which few fit":     {`{"f:spec": {"f:type": {}}}`, nil},
		"nothing like an enumeration":  {`{"f:spec": {"f:affinity": {}}}`, nil},
		"nothing that is not there":    {`{"f:spec": {"f:serviceName": {}}}`, nil},
		"no element that is not there": {`{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"gone\"}": {"f:image": {}}}}}}}`, nil},
		"those at the top and one far down": {
			`{"f:spec": {"f:replicas": {}, "f:paused": {}, "f:minReadySeconds": {}, "f:progressDeadlineSeconds": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:image": {}}}}}}}`,
			[]string{"spec.minReadySeconds=6", "spec.paused=false", "spec.progressDeadlineSeconds=7", "spec.template.spec.containers.1.image=nginx:1.29x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, one := range edits(read(t, fmt.Sprintf(managed, test.fields))) {
				got = append(got, fmt.Sprintf("%s=%v", strings.Join(one.path, "."), one.value))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestEditsOfAnObjectWithoutManagedFields(t *testing.T) {
	if found := edits(read(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}")); len(found) > 0 {
		t.Errorf("got %v, although nothing says who has set what", found)
	}
}

func TestFollow(t *testing.T) {
	object := read(t, fmt.Sprintf(managed, "{}")).Object
	for name, test := range map[string]struct {
		path fieldpath.Path
		want string
	}{
		"a field":                {fieldpath.MakePathOrDie("spec", "replicas"), "spec.replicas=2"},
		"an element":             {fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "side"), "image"), "spec.template.spec.containers.0.image=side:1"},
		"no such element":        {fieldpath.MakePathOrDie("spec", "template", "spec", "containers", fieldpath.KeyByFields("name", "x")), "=<nil>"},
		"an element by position": {fieldpath.MakePathOrDie("spec", "template", "spec", "containers", 0), "=<nil>"},
		"a key of a map":         {fieldpath.MakePathOrDie("spec", fieldpath.KeyByFields("name", "x")), "=<nil>"},
		"beyond a leaf":          {fieldpath.MakePathOrDie("spec", "replicas", "x"), "=<nil>"},
	} {
		names, value := follow(object, test.path)
		if got := fmt.Sprintf("%s=%v", strings.Join(names, "."), value); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestSet(t *testing.T) {
	for name, test := range map[string]struct {
		path []string
		to   any
		want string
	}{
		"a field":                {[]string{"a", "b"}, "y", `{"a":{"b":"y"},"l":[{"x":1},2]}`},
		"a new one":              {[]string{"a", "c", "d"}, int64(1), `{"a":{"b":"x","c":{"d":1}},"l":[{"x":1},2]}`},
		"a field that goes":      {[]string{"a", "b"}, nil, `{"a":{},"l":[{"x":1},2]}`},
		"a field of an element":  {[]string{"l", "0", "x"}, int64(5), `{"a":{"b":"x"},"l":[{"x":5},2]}`},
		"an element":             {[]string{"l", "1"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},5]}`},
		"an element that is not": {[]string{"l", "2"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
		"no index":               {[]string{"l", "x"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
		"beyond a leaf":          {[]string{"a", "b", "c"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
	} {
		object := map[string]any{"a": map[string]any{"b": "x"}, "l": []any{map[string]any{"x": int64(1)}, int64(2)}}
		set(object, test.path, test.to)
		got, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestChildrenAreWhatTheOperatorWrote(t *testing.T) {
	c := sailing()
	var names []string
	for _, one := range c.children(1) {
		names = append(names, one.key.String())
	}
	// Neither the pod, which a controller of the cluster made, nor the custom resource.
	if want := []string{"Deployment default/victory"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	for key, object := range c.reference[1].state {
		c.before[key] = object
	}
	if left := c.children(1); len(left) > 0 {
		t.Errorf("%s was there before the scenario", left[0].key)
	}
}
