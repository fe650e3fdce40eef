// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appv1 "github.com/opdock/opdock/api/app/v1"
	appv1alpha1 "github.com/opdock/opdock/api/app/v1alpha1"
	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

func goTypes(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		appv1.AddToScheme, appv1alpha1.AddToScheme, collectorv1.AddToScheme, kappv1.AddToScheme, kubegroupv1.AddToScheme, robotv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

func TestEveryServedVersionHasAGoType(t *testing.T) {
	scheme := goTypes(t)
	for _, path := range crdFiles(t) {
		crd := mustRead(t, path)[0]
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		for _, version := range versions {
			for _, name := range []string{"kind", "listKind"} {
				kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", name)
				gvk := schema.GroupVersionKind{Group: group, Version: version.(map[string]any)["name"].(string), Kind: kind}
				if !scheme.Recognizes(gvk) {
					t.Errorf("there is no Go type for %v", gvk)
				}
			}
		}
	}
}

// What a sample says survives being read and written by a Go program.
func TestGoTypesKeepSamples(t *testing.T) {
	scheme := goTypes(t)
	for _, file := range sampleFiles(t) {
		object := sample(t, file)
		typed, err := scheme.New(object.GroupVersionKind())
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(typed); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		again, err := json.Marshal(typed.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(again, &got); err != nil {
			t.Fatal(err)
		}
		requireContains(t, file, got, object.Object)
	}
}

// The first AppService had types of Kubernetes here. Ours have the same fields, so that its users find them all.
func TestAppServiceHasAllFieldsOfItsModels(t *testing.T) {
	for _, pair := range []struct{ ours, model any }{
		{appv1.AppServiceStatus{}, appsv1.DeploymentStatus{}},
		{appv1.ServicePort{}, corev1.ServicePort{}},
	} {
		ours := jsonNames(reflect.TypeOf(pair.ours))
		for _, name := range jsonNames(reflect.TypeOf(pair.model)) {
			if !slices.Contains(ours, name) {
				t.Errorf("%T lacks %s, which %T has", pair.ours, name, pair.model)
			}
		}
	}
}

func jsonNames(structType reflect.Type) []string {
	var names []string
	for i := range structType.NumField() {
		name, _, _ := strings.Cut(structType.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
