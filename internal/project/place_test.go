// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestSamplePlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config", "samples"), 0o700); err != nil {
		t.Fatal(err)
	}
	content := `apiVersion: sea.example.com/v1
kind: Ship
metadata: {name: argo}
spec:
  crew: 3
---

# The second.
apiVersion: sea.example.com/v1
kind: Ship
metadata:
  name: beagle
  labels:
    app.kubernetes.io/name: ship
spec:
  decks:
  - name: upper
    guns: 1
  - name: lower
    guns: 2
---
apiVersion: sea.example.com/v1
kind: Port
metadata: {name: only}
`
	if err := os.WriteFile(filepath.Join(dir, "config", "samples", "all.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Project{Dir: dir}
	for name, test := range map[string]struct {
		kind, name, field string
		line              int
	}{
		"a field":                     {"Ship", "argo", "spec.crew", 5},
		"with a dot before it":        {"Ship", "argo", ".spec.crew", 5},
		"of another document":         {"Ship", "beagle", "spec.decks", 16},
		"an item by its number":       {"Ship", "beagle", "spec.decks[1].guns", 20},
		"an item by its name":         {"Ship", "beagle", `.spec.decks[name="lower"].guns`, 20},
		"a key with dots":             {"Ship", "beagle", "metadata.labels[app.kubernetes.io/name]", 14},
		"a field that is not there":   {"Ship", "beagle", "spec.decks[0].sails", 17},
		"no field":                    {"Ship", "beagle", "", 9},
		"nothing of it is there":      {"Ship", "beagle", "status", 9},
		"renamed by a kustomization":  {"Port", "test-only", "metadata.name", 24},
		"one of several, and renamed": {"Ship", "test-argo", "spec.crew", 0},
	} {
		t.Run(name, func(t *testing.T) {
			sample := &unstructured.Unstructured{}
			sample.SetGroupVersionKind(schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: test.kind})
			sample.SetName(test.name)
			place, ok := p.SamplePlace(sample, test.field)
			if place.Line != test.line || ok != (test.line > 0) {
				t.Errorf("got %s, %t", place, ok)
			}
			if ok && place.File != "config/samples/all.yaml" {
				t.Errorf("it is in %s", place.File)
			}
		})
	}
}
