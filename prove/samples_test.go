// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func sampleOf(apiVersion, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": strings.ToLower(kind)}}}
}

func definitionOf(group, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"spec": map[string]any{"group": group, "names": map[string]any{"kind": kind}},
	}}
}

// A step that patches an object must name it.
func TestSamplesWithoutName(t *testing.T) {
	generated := sampleOf("sea.example.com/v1", "Ship")
	generated.Object["metadata"] = map[string]any{"generateName": "ship-"}
	fragment := sampleOf("sea.example.com/v1", "Ship")
	fragment.Object["metadata"] = nil
	var said []string
	left := servedSamples([]*unstructured.Unstructured{generated, fragment}, []*unstructured.Unstructured{definitionOf("sea.example.com", "Ship")}, nil, func(text string) { said = append(said, text) })
	const want = "a Ship (sea.example.com/v1) is left out of the samples: it has no metadata.name, so later steps could not name it"
	if len(left) > 0 || !slices.Equal(said, []string{want, want}) {
		t.Errorf("%d are left, and it says %q", len(left), said)
	}
}

// A step that creates an object of a kind that is not served fails, and the whole campaign with it.
func TestSamplesOfKindsThatAreNotServed(t *testing.T) {
	samples := []*unstructured.Unstructured{
		sampleOf("sea.example.com/v1", "Ship"), sampleOf("sea.example.com/v1alpha1", "Configuration"), sampleOf("v1", "Secret"),
		sampleOf("apps/v1", "Deployment"), sampleOf("cert-manager.io/v1", "Certificate"), sampleOf("other.example.com/v1", "Issuer"),
	}
	var said []string
	asked := 0
	external := func() []*unstructured.Unstructured {
		asked++
		return []*unstructured.Unstructured{definitionOf("cert-manager.io", "Certificate")}
	}
	say := func(text string) { said = append(said, text) }
	var kinds []string
	for _, one := range servedSamples(samples, []*unstructured.Unstructured{definitionOf("sea.example.com", "Ship")}, external, say) {
		kinds = append(kinds, one.GetKind())
	}
	if want := []string{"Ship", "Secret", "Deployment", "Certificate"}; !slices.Equal(kinds, want) {
		t.Errorf("the samples are %q", kinds)
	}
	if len(said) != 2 || said[0] != "Configuration configuration is left out of the samples: neither Kubernetes nor a CRD of the project has its kind (sea.example.com/v1alpha1)" {
		t.Errorf("it says %q", said)
	}
	if asked != 1 {
		t.Errorf("other modules are searched %d times", asked)
	}
	servedSamples(samples[:1], []*unstructured.Unstructured{definitionOf("sea.example.com", "Ship")}, external, say)
	if asked != 1 {
		t.Error("other modules are searched although nothing is missing")
	}
}
