// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kustomize before version 5 accepted the names of files as patches.
func TestPatchesThatAreNamesOfFiles(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                        "module example.com/a\n",
		"config/crd/kustomization.yaml": "resources: [thing.yaml]\npatches:\n- labels.yaml\n- path: annotations.yaml\n",
		"config/crd/thing.yaml":         definition("Thing", "things"),
		"config/crd/labels.yaml":        patchOf("labels"),
		"config/crd/annotations.yaml":   patchOf("annotations"),
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	definitions, err := p.CRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) != 1 || definitions[0].GetLabels()["patched"] != "yes" || definitions[0].GetAnnotations()["patched"] != "yes" {
		t.Errorf("the CRDs are %v", definitions)
	}
	if want := "config/crd/kustomization.yaml: patches are names of files, which kustomize 5 does not accept; write each as path: FILE"; !slices.Equal(warnings, []string{want}) {
		t.Errorf("the warnings are %q", warnings)
	}
}

func patchOf(field string) string {
	return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.other.io, " + field + `: {patched: "yes"}}}` + "\n"
}

// Samples that show several ways to use a kind often have one name.
func TestSamplesOfOneName(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                  "module example.com/a\n",
		"config/samples/one.yaml": "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}, spec: {of: one}}\n",
		"config/samples/two.yaml": "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}, spec: {of: two}}\n---\n" +
			"{apiVersion: other.io/v1, kind: Thing, metadata: {name: a, namespace: elsewhere}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n",
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	samples, err := p.Samples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(samples); got != "Thing a, Thing elsewhere/a, Secret a" {
		t.Errorf("the samples are %s", got)
	}
	if want := "Thing a is a sample in config/samples/one.yaml and in config/samples/two.yaml; using config/samples/one.yaml"; !slices.Equal(warnings, []string{want}) {
		t.Errorf("the warnings are %q", warnings)
	}
}

// A folder with many of them needs one warning, not one for each.
func TestManySamplesOfOneName(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":          "module example.com/a\n",
		"deploy/crd.yaml": definition("Thing", "things"),
		"examples/a.yaml": "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}}\n",
		"examples/b.yaml": "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}}\n---\n{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}}\n",
		"examples/c.yaml": "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}}\n",
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	samples, err := p.Samples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := "4 samples have the name Thing a; using the one in examples/a.yaml"; names(samples) != "Thing a" || !slices.Equal(warnings, []string{want}) {
		t.Errorf("the samples are %s, with %q", names(samples), warnings)
	}
}

// Folders of examples have files for other tools and for people.
func TestExamplesThatCannotBeRead(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":              "module example.com/a\n",
		"deploy/crd.yaml":     definition("Thing", "things"),
		"examples/thing.yaml": "{apiVersion: other.io/v1, kind: Thing, metadata: {name: a}}\n",
		"examples/other.yaml": "kind: A\nmetadata: [\n",
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	samples, err := p.Samples(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := names(samples); got != "Thing a" {
		t.Errorf("the samples are %s", got)
	}
	if len(warnings) != 1 || warnings[0] != "examples/other.yaml:2: did not find expected node content; the file is left out of the samples" {
		t.Errorf("the warnings are %q", warnings)
	}
}

// Without a kustomization in one of the usual places, all files are read. Overlays have patches among them.
func TestPatchesOfOverlaysAreNoManifests(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod": "module example.com/a\n",
		"config/default/overlays/dev/kustomization.yaml": "resources: [../../../manager]\npatchesStrategicMerge: [image.yaml]\n",
		"config/default/overlays/dev/image.yaml":         "{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator}, spec: {part: patch}}\n",
		"config/default/overlays/old/kustomization.yaml": "patches: [image.yaml]\n",
		"config/default/overlays/old/image.yaml":         "{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator}, spec: {part: old patch}}\n",
		"config/manager/manager.yaml":                    "{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator}, spec: {part: whole}}\n",
		"config/rbac/kustomization.yaml":                 "resources: [role.yaml]\npatches:\n- path: labels.yaml\n- patch: '[]'\n",
		"config/rbac/role.yaml":                          "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: role}}\n",
		"config/rbac/labels.yaml":                        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: role, labels: {a: b}}}\n",
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	manifests, err := p.Manifests(t.Context())
	if len(warnings) != 2 || !strings.HasPrefix(warnings[0], "the kustomization in config/default/overlays/dev is left out") {
		t.Errorf("the warnings are %q", warnings)
	}
	if err != nil || names(manifests) != "Deployment operator, ClusterRole role" {
		t.Fatalf("the manifests are %s, %v", names(manifests), err)
	}
	if part, _, _ := unstructured.NestedString(manifests[0].Object, "spec", "part"); part != "whole" {
		t.Errorf("the Deployment is the %s", part)
	}
}

// Files alone do not fit together where kustomizations complete names and namespaces.
func TestAKustomizationInAnotherFolder(t *testing.T) {
	files := map[string]string{
		"go.mod":                              "module example.com/a\n",
		"config/install/kustomization.yaml":   "namespace: a-system\nresources: [../crd, ../rbac, ../manager]\n",
		"config/base/kustomization.yaml":      "resources: [../crd, ../manager]\n",
		"config/elsewhere/kustomization.yaml": "resources: [../crd, ../rbac, ../manager, \"https://example.com/more.yaml\"]\n",
		"config/crd/kustomization.yaml":       "resources: [thing.yaml]\n",
		"config/crd/thing.yaml":               definition("Thing", "things"),
		"config/manager/kustomization.yaml":   "resources: [manager.yaml]\n",
		"config/manager/manager.yaml":         "{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator}, spec: {template: {spec: {serviceAccountName: a-operator}}}}\n",
		"config/rbac/kustomization.yaml":      "namePrefix: a-\nresources: [rbac.yaml]\n",
		"config/rbac/rbac.yaml": `{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: role}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: role}
subjects: [{kind: ServiceAccount, name: a-operator, namespace: a-system}]
`,
	}
	identity, err := write(t, files).Identity(t.Context())
	if err != nil || identity == nil {
		t.Fatalf("the identity is %v, %v", identity, err)
	}
	if identity.User() != "system:serviceaccount:a-system:a-operator" || names(identity.Objects) != "ServiceAccount a-system/a-operator, ClusterRole a-role, ClusterRoleBinding a-binding" {
		t.Errorf("the identity is %s by %s", identity.User(), names(identity.Objects))
	}
}
