// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func definition(kind, plural string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ` + plural + `.other.io
  labels:
    app: '{{ template "name" . }}'
spec:
  group: other.io
  names: {kind: ` + kind + `, plural: ` + plural + `}
  versions: [{name: v1, served: true}]
`
}

func TestCRDsOfKindsOfOtherModules(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod": "module example.com/mine\n\ngo 1.26\n\nrequire other.io/things v1.0.0\n\nreplace other.io/things => ./things\n",
		"PROJECT": `domain: example.com
layout:
- go.kubebuilder.io/v4
projectName: mine
resources:
- {controller: true, domain: other.io, external: true, kind: Lamp, path: other.io/things/v1, version: v1}
- {controller: true, domain: other.io, external: true, kind: NotThere, path: other.io/things/v1, version: v1}
- {controller: true, domain: gone.io, external: true, kind: Lamp, path: gone.io/things/v1, version: v1}
version: "3"
`,
		"main.go":                       "package main\n\nimport _ \"other.io/things/v1\"\n\nfunc main() {}\n",
		"things/go.mod":                 "module other.io/things\n\ngo 1.26\n",
		"things/v1/types.go":            "package v1\n",
		"things/deploy/crds/lamp.yaml":  definition("Lamp", "lamps"),
		"things/deploy/crds/chair.yaml": definition("Chair", "chairs"),
		"things/deploy/broken.yaml":     "kind: CustomResourceDefinition\n{{ if .Values.crds }}\n",
	})
	found := p.ExternalCRDs(t.Context(), append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"))
	if names(found) != "CustomResourceDefinition lamps.other.io" {
		t.Fatalf("got %s", names(found))
	}
	if len(found[0].GetLabels()) > 0 {
		t.Errorf("the labels are a template: %v", found[0].GetLabels())
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "go.sum")); err == nil {
		t.Error("something was written into the project")
	}
}

func TestProjectsWithoutKindsOfOtherModules(t *testing.T) {
	for _, folder := range []string{"single", "multigroup", "sdk", "plain"} {
		if found := fixture(t, folder).ExternalCRDs(t.Context(), os.Environ()); len(found) > 0 {
			t.Errorf("%s: got %s", folder, names(found))
		}
	}
}

// An operator may need kinds that nothing in the project's manifests or in PROJECT tells about.
func TestDefinitionOfAKindThatTheOperatorLooksFor(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                              "module example.com/mine\n\ngo 1.26\n\nrequire other.io/things v1.0.0\n\nreplace other.io/things => ./things\n",
		"cmd/main.go":                         "package main\n\nimport _ \"other.io/things/v1\"\n\nfunc main() {}\n",
		"config/crd/kustomization.yaml":       "resources: []\n",
		"config/crd/thirdparty/chair.yaml":    definition("Chair", "chairs"),
		"test/crds/table.yaml":                definition("Table", "tables"),
		"things/go.mod":                       "module other.io/things\n\ngo 1.26\n",
		"things/v1/types.go":                  "package v1\n",
		"things/deploy/crds/lamp.yaml":        definition("Lamp", "lamps"),
		"things/deploy/crds/chair.yaml":       definition("Chair", "chairs"),
		"things/somewhere/else/cupboard.yaml": definition("Cupboard", "cupboards"),
	})
	for wanted, place := range map[Wanted]string{
		{Group: "other.io", Kind: "Chair"}:       "config/crd/thirdparty/chair.yaml",
		{Group: "other.io", Resource: "chairs"}:  "config/crd/thirdparty/chair.yaml",
		{Group: "other.io", Kind: "Table"}:       "test/crds/table.yaml",
		{Group: "other.io", Kind: "Lamp"}:        "module other.io/things",
		{Group: "another.io", Kind: "Lamp"}:      "",
		{Group: "other.io", Kind: "Lampion"}:     "",
		{Group: "other.io", Resource: "lampion"}: "",
		{Group: "other.io", Version: "v1"}:       "config/crd/thirdparty/chair.yaml, test/crds/table.yaml",
		{Group: "other.io", Version: "v9"}:       "",
	} {
		found := p.DefinitionsOf(t.Context(), wanted, "./cmd", append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"))
		var places []string
		for _, one := range found {
			places = append(places, one.Place)
		}
		if got := strings.Join(places, ", "); got != place {
			t.Errorf("%s: got %q", wanted, got)
		}
	}
}
