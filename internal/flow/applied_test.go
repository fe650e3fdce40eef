// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// configuration is what a controller applies; owned is what the server answers that it owns.
const (
	configuration = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: default
  labels: {a: b}
spec:
  replicas: 3
  template:
    spec:
      tolerations: [{key: x}]
      volumes: [{name: data, emptyDir: {}}]
      containers:
        - name: sidecar
        - name: app
          image: nginx
          ports: [{containerPort: 80}]
  finalizers: [one]
`
	owned = `{
"f:metadata": {"f:labels": {"f:a": {}}, "f:annotations": {"f:opdock.dev/applied": {}}},
"f:spec": {
  "f:replicas": {},
  "f:finalizers": {"v:\"one\"": {}},
  "f:template": {"f:spec": {
    "f:tolerations": {},
    "f:volumes": {"k:{\"name\":\"data\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
    "f:containers": {"k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}}, "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {},
      "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}
  }}}}`
)

func TestUpToDate(t *testing.T) {
	without := func(field string) string {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(owned), &fields); err != nil {
			t.Fatal(err)
		}
		if !remove(fields, field) {
			t.Fatalf("there is no field %s", field)
		}
		data, err := yaml.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := yaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		return string(asJSON)
	}
	for _, test := range []struct {
		name  string
		owned string
		hash  string
		want  bool
	}{
		{"all is ours", owned, "h", true},
		{"we want something else", owned, "other", false},
		{"somebody scaled it", without("f:replicas"), "h", false},
		{"somebody changed the image", without("f:image"), "h", false},
		{"somebody changed a list that is one value", without("f:tolerations"), "h", false},
		{"somebody removed the label", without("f:a"), "h", false},
		{"somebody removed the container", without(`k:{"name":"app"}`), "h", false},
		{"somebody removed the port", without(`k:{"containerPort":80,"protocol":"TCP"}`), "h", false},
		{"somebody replaced the empty volume", without("f:emptyDir"), "h", false},
		{"somebody removed an item of a set", without(`v:"one"`), "h", false},
		{"nothing is ours", "{}", "h", false},
		{"nonsense", "[", "h", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var desired map[string]any
			if err := yaml.Unmarshal([]byte(configuration), &desired); err != nil {
				t.Fatal(err)
			}
			live := &metav1.ObjectMeta{
				Annotations: map[string]string{AppliedAnnotation: test.hash},
				ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(owned)},
					{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, Subresource: "scale", FieldsV1: metav1.NewFieldsV1(owned)},
					{Manager: "us", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(test.owned)},
				},
			}
			if got := upToDate(live, desired, "h", "us"); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// remove removes a field wherever it is, and what contains nothing else.
func remove(fields map[string]any, name string) bool {
	if _, ok := fields[name]; ok {
		delete(fields, name)
		return true
	}
	for parent, below := range fields {
		if below, ok := below.(map[string]any); ok && remove(below, name) {
			if len(below) == 0 {
				delete(fields, parent)
			}
			return true
		}
	}
	return false
}
