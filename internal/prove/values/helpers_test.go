// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/opdock/opdock/config/crd"
	"github.com/opdock/opdock/config/samples"
)

// subject is an object with its CRD.
type subject struct {
	name       string
	definition *apiextensionsv1.CustomResourceDefinition
	version    apiextensionsv1.CustomResourceDefinitionVersion
	object     *unstructured.Unstructured
}

func (s subject) schema() *apiextensionsv1.JSONSchemaProps { return s.version.Schema.OpenAPIV3Schema }

func (s subject) propose(o Options) []Change {
	if scale := s.version.Subresources.Scale; scale != nil {
		o.ReplicasPath = scale.SpecReplicasPath
	}
	return Propose(s.schema(), s.object.Object, o)
}

// subjects returns all samples of the fleet, and the database.
func subjects(t testing.TB) []subject {
	t.Helper()
	documents := decode(t, "database.yaml", read(t, os.DirFS("testdata").(readFS), "database.yaml"))
	definitions := []*apiextensionsv1.CustomResourceDefinition{asDefinition(t, documents[0])}
	entries, err := crd.Bases.ReadDir("bases")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		for _, document := range decode(t, entry.Name(), read(t, crd.Bases, path.Join("bases", entry.Name()))) {
			definitions = append(definitions, asDefinition(t, document))
		}
	}
	found := []subject{subjectOf(t, "database.yaml", documents[1], definitions)}
	entries, err = samples.Manifests.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		for _, document := range decode(t, entry.Name(), read(t, samples.Manifests, entry.Name())) {
			// Some samples bring other objects along.
			if one := subjectOf(t, entry.Name(), document, definitions); one.definition != nil {
				found = append(found, one)
			}
		}
	}
	if len(found) < 10 {
		t.Fatalf("there are only %d samples; the test looks in the wrong place", len(found))
	}
	return found
}

type readFS interface {
	ReadFile(name string) ([]byte, error)
}

func read(t testing.TB, from readFS, name string) []byte {
	t.Helper()
	raw, err := from.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decode(t testing.TB, name string, raw []byte) []*unstructured.Unstructured {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	var found []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		switch {
		case errors.Is(err, io.EOF):
			return found
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		case object.Object != nil:
			found = append(found, object)
		}
	}
}

func asDefinition(t testing.TB, document *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(document.Object, definition); err != nil {
		t.Fatalf("%s: %v", document.GetName(), err)
	}
	return definition
}

func subjectOf(t testing.TB, name string, object *unstructured.Unstructured, definitions []*apiextensionsv1.CustomResourceDefinition) subject {
	t.Helper()
	kind := object.GroupVersionKind()
	for _, definition := range definitions {
		for _, version := range definition.Spec.Versions {
			if definition.Spec.Group == kind.Group && definition.Spec.Names.Kind == kind.Kind && version.Name == kind.Version {
				return subject{name + " " + object.GetName(), definition, version, object}
			}
		}
	}
	return subject{}
}
