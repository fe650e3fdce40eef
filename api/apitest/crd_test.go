// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/openapi"

	"github.com/opdock/opdock/cluster/clustertest"
)

// annotationLimit is the most that all annotations of an object may hold together. kubectl apply stores the whole
// manifest in one, as JSON. Three quarters of it leave room for the next fields.
const annotationLimit = 256 * 1024 * 3 / 4

func TestCRDsAreSmallEnoughForKubectlApply(t *testing.T) {
	for _, path := range crdFiles(t) {
		for _, crd := range mustRead(t, path) {
			asJSON, err := json.Marshal(crd)
			if err != nil {
				t.Fatal(err)
			}
			if len(asJSON) > annotationLimit {
				t.Errorf("%s has %d bytes as JSON, %d too many", filepath.Base(path), len(asJSON), len(asJSON)-annotationLimit)
			}
		}
	}
}

func TestCRDsAreEstablishedAndStructural(t *testing.T) {
	s := realServer(t)
	for _, path := range crdFiles(t) {
		for _, manifest := range mustRead(t, path) {
			crd, err := s.Resource(crdResource).Get(t.Context(), manifest.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Error(err)
				continue
			}
			if strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy"); strategy != "None" {
				t.Errorf("%s is converted by %s; versions with the same schema need nothing", crd.GetName(), strategy)
			}
			for condition, want := range map[string]string{"Established": "True", "NamesAccepted": "True", "NonStructuralSchema": ""} {
				if got := conditionStatus(crd, condition); got != want {
					t.Errorf("%s: condition %s is %q, want %q", crd.GetName(), condition, got, want)
				}
			}
		}
	}
}

func TestEveryKindCanBeFound(t *testing.T) {
	s := realServer(t)
	lists, err := s.discovery(t).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	shortNames := map[string]string{"AppService": "appsvc", "PodCluster": "podc", "Robot": "rob", "Collector": "coll", "KAPP": "ka"}
	found := map[string]bool{}
	taken := map[string][]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			for _, short := range resource.ShortNames {
				taken[short] = append(taken[short], resource.Kind)
			}
			if !slices.Contains(resource.Categories, "opdock") {
				continue
			}
			found[resource.Kind] = true
			if want := shortNames[resource.Kind]; !slices.Contains(resource.ShortNames, want) {
				t.Errorf("%s has the short names %q, want %s", resource.Kind, resource.ShortNames, want)
			}
			if resource.Kind == "AppService" && list.GroupVersion != "app.example.com/v1" {
				t.Errorf("the preferred version of AppService is %s", list.GroupVersion)
			}
		}
	}
	for kind, short := range shortNames {
		if !found[kind] {
			t.Errorf("%s is not in category opdock", kind)
		}
		if len(taken[short]) != 1 {
			t.Errorf("the short name %s belongs to %q", short, taken[short])
		}
	}
}

// kubectl explain shows what the API server publishes, not what is in our files.
func TestPublishedSchemasExplainEveryField(t *testing.T) {
	s := realServer(t)
	paths := publishedSchemas(t, s)
	for name, resource := range resources {
		raw, err := paths["apis/"+resource.GroupVersion().String()].Schema("application/json")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(raw, &document); err != nil {
			t.Fatal(err)
		}
		explained := 0
		for schemaName, schema := range document.Components.Schemas {
			if schema["x-kubernetes-group-version-kind"] == nil || schema["properties"].(map[string]any)["spec"] == nil {
				continue
			}
			for _, part := range []string{"spec", "status"} {
				explained += requireDescriptions(t, schemaName+"."+part, schema["properties"].(map[string]any)[part].(map[string]any))
			}
		}
		if explained == 0 {
			t.Errorf("%s: nothing is explained", name)
		}
	}
}

// publishedSchemas waits until the API server has published the schemas of all kinds, which takes it a moment and
// cannot be watched.
func publishedSchemas(t *testing.T, s server) map[string]openapi.GroupVersion {
	t.Helper()
	client := s.discovery(t).OpenAPIV3()
	var paths map[string]openapi.GroupVersion
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, establishing, true, func(context.Context) (bool, error) {
		var err error
		paths, err = client.Paths()
		for _, resource := range resources {
			if paths["apis/"+resource.GroupVersion().String()] == nil {
				return false, err
			}
		}
		return true, err
	})
	if err != nil {
		t.Fatalf("waiting for the schemas of all kinds to be published: %v", err)
	}
	return paths
}

func TestSamplesApply(t *testing.T) {
	s := realServer(t)
	kinds := map[string]int{}
	for _, file := range sampleFiles(t) {
		t.Run(file, func(t *testing.T) {
			namespace := clustertest.Namespace(t)
			object := sample(t, file)
			kinds[object.GetAPIVersion()+" "+object.GetKind()]++
			// The status has a default, which the server stores with the first write after the creation.
			if _, err := s.apply(t, object, namespace); err != nil {
				t.Fatal(err)
			}
			applied, err := s.apply(t, object, namespace)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.apply(t, object, namespace)
			if err != nil {
				t.Fatal(err)
			}
			if again.GetResourceVersion() != applied.GetResourceVersion() {
				t.Error("applying the same again has changed the object")
			}
			requireContains(t, "", applied.Object, object.Object)
		})
	}
	for kind := range resources {
		want := 2
		if kind == "app.example.com/v1alpha1 AppService" {
			want = 1
		}
		if kinds[kind] < want {
			t.Errorf("%s has %d samples, want a small and a full one", kind, kinds[kind])
		}
	}
}

// requireContains checks that an object has everything that was asked for.
func requireContains(t *testing.T, path string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		gotMap, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is %v", path, got)
			return
		}
		for key, value := range want {
			requireContains(t, path+"."+key, gotMap[key], value)
		}
	case []any:
		gotList, ok := got.([]any)
		if !ok || len(gotList) != len(want) {
			t.Errorf("%s is %v, want %v", path, got, want)
			return
		}
		for i := range want {
			requireContains(t, path+"[]", gotList[i], want[i])
		}
	default:
		if !sameJSON(got, want) {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

// sameJSON compares what values are as JSON, because decoders differ in which Go types they choose for numbers.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func crdFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) != 5 {
		t.Fatalf("there are %d CustomResourceDefinitions in %s, want 5", len(paths), crdFolder)
	}
	return paths
}

func mustRead(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := readObjects(path)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// requireDescriptions checks that every property below a schema has a description, and returns how many there are.
func requireDescriptions(t *testing.T, path string, schema map[string]any) int {
	t.Helper()
	count := 0
	// The API server wraps references that have a default or description of their own.
	if description, _ := schema["description"].(string); description == "" && schema["$ref"] == nil {
		t.Errorf("%s has no description", path)
	} else {
		count++
	}
	for ; schema["items"] != nil; path += "[]" {
		schema, _ = schema["items"].(map[string]any)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		count += requireDescriptions(t, path+"."+name, property.(map[string]any))
	}
	return count
}
