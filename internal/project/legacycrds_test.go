// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/crdschema"
)

// legacy is a definition as projects had them before v1: with one schema for all versions.
const legacy = `apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: things.example.com, labels: {app: things}}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  version: v1alpha1
  subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
  additionalPrinterColumns: [{name: Replicas, type: integer, JSONPath: .spec.replicas}]
  validation:
    openAPIV3Schema:
      properties:
        apiVersion: {type: string}
        kind: {type: string}
        metadata: {type: object}
        spec:
          type: object
          required: [replicas]
          properties:
            replicas: {type: integer, minimum: 1}
            port: {anyOf: [{type: integer}, {type: string}]}
            labels: {type: object, additionalProperties: {type: string}}
            parts: {type: array, items: {type: object, properties: {name: {type: string}}}}
        status: {type: object}
`

// converted reads the definition of a project with one file, and lets the API server's own code judge it.
func converted(t *testing.T, manifest string) (crd *apiextensionsv1.CustomResourceDefinition, warnings []string) {
	t.Helper()
	p := write(t, map[string]string{"go.mod": "module example.com/a\n", "deploy/crds/thing.yaml": "# An old one.\n" + manifest})
	p.Warn = func(message string) { warnings = append(warnings, message) }
	all, err := p.CRDs(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d definitions, %v", len(all), err)
	}
	crd = &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all[0].Object, crd); err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.CustomResourceDefinition
	served := crd.DeepCopy()
	definitionVersions.Default(served)
	served.Status.StoredVersions = []string{served.Spec.Versions[0].Name}
	if err := definitionVersions.Convert(served, &internal, nil); err != nil {
		t.Fatal(err)
	}
	if problems := validation.ValidateCustomResourceDefinition(t.Context(), &internal); len(problems) > 0 {
		t.Errorf("no API server accepts it: %v", problems.ToAggregate())
	}
	return crd, warnings
}

func TestLegacyCRD(t *testing.T) {
	crd, warnings := converted(t, legacy)
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0], "deploy/crds/thing.yaml:2: CRD things.example.com has version v1beta1") {
		t.Errorf("it says %q", warnings)
	}
	if crd.APIVersion != "apiextensions.k8s.io/v1" || crd.Labels["app"] != "things" || len(crd.Spec.Versions) != 1 {
		t.Fatalf("got %+v", crd)
	}
	version := crd.Spec.Versions[0]
	if version.Name != "v1alpha1" || !version.Served || !version.Storage || version.Subresources.Scale.SpecReplicasPath != ".spec.replicas" || version.AdditionalPrinterColumns[0].JSONPath != ".spec.replicas" {
		t.Errorf("got %+v", version)
	}
	schema, err := crdschema.New(version.Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	// Before v1, the API server checked what the schema has, and kept all else.
	for text, valid := range map[string]bool{
		`{replicas: 1, port: 80, more: {x: 1}, parts: [{name: a, size: 3}], labels: {a: b}}`: true,
		`{replicas: 1, port: http}`: true,
		`{replicas: 0}`:             false,
		`{}`:                        false,
		`{replicas: 1, port: true}`: false,
	} {
		object := map[string]any{"apiVersion": "example.com/v1alpha1", "kind": "Thing", "metadata": map[string]any{"name": "a"}, "status": map[string]any{"ready": true}}
		var spec map[string]any
		if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
			t.Fatal(err)
		}
		object["spec"] = spec
		if pruned := schema.Prune(object); len(pruned) > 0 {
			t.Errorf("%s: %q are lost", text, pruned)
		}
		if err := schema.Validate(t.Context(), object, nil).ToAggregate(); (err == nil) != valid {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLegacyCRDThatPrunes(t *testing.T) {
	crd, _ := converted(t, strings.Replace(legacy, "  scope: ", "  preserveUnknownFields: false\n  scope: ", 1))
	schema, err := crdschema.New(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"spec": map[string]any{"replicas": int64(1), "more": "x"}}
	if pruned := schema.Prune(object); !slices.Equal(pruned, []string{"spec.more"}) {
		t.Errorf("%q are lost", pruned)
	}
}

// A schema without types could be stored in v1beta1, and a definition without any schema.
func TestLegacyCRDWithoutAStructuralSchema(t *testing.T) {
	crd, warnings := converted(t, strings.Replace(legacy, "labels: {type: object, ", "labels: {", 1))
	if len(warnings) != 1 || !strings.Contains(warnings[0], "the schema of v1alpha1 is left out, because it is not structural (") || !strings.Contains(warnings[0], "labels") {
		t.Errorf("it says %q", warnings)
	}
	before, _, _ := strings.Cut(legacy, "  validation:")
	without, _ := converted(t, before)
	for _, one := range []*apiextensionsv1.CustomResourceDefinition{crd, without} {
		schema, err := crdschema.New(one.Spec.Versions[0].Schema.OpenAPIV3Schema)
		if err != nil {
			t.Fatal(err)
		}
		object := map[string]any{"spec": map[string]any{"labels": "anything"}}
		if pruned := schema.Prune(object); len(pruned) > 0 || len(schema.Validate(t.Context(), object, nil)) > 0 {
			t.Errorf("%q are lost, or it is refused", pruned)
		}
	}
}

func TestLegacyCRDsOfAKustomization(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod": "module example.com/a\n", "config/crd/kustomization.yaml": "resources: [thing.yaml]\n", "config/crd/thing.yaml": legacy,
		"config/default/kustomization.yaml": "resources: [../crd]\n",
	})
	for name, read := range map[string]func() ([]*unstructured.Unstructured, error){
		"CRDs": func() ([]*unstructured.Unstructured, error) { return p.CRDs(t.Context()) }, "manifests": func() ([]*unstructured.Unstructured, error) { return p.Manifests(t.Context()) },
	} {
		if all, err := read(); err != nil || len(all) != 1 || all[0].GetAPIVersion() != "apiextensions.k8s.io/v1" {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}
