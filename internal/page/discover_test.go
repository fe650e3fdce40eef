// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/internal/tree"
)

const ferry = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ferries.harbour.example}
spec:
  group: harbour.example
  scope: Namespaced
  names: {kind: Ferry, plural: ferries}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// A kind that is defined while the page is there joins the tree, with what its objects own and who changed that.
func TestKindsAreDiscovered(t *testing.T) {
	config := fleettest.Config(t)
	server, namespace := fleettest.Client(t), clustertest.Namespace(t)
	model, changes := tree.NewModel(), NewChanges()
	d := tree.Discovery{Model: model, Changed: changes.Observe, Problem: func(err error) { t.Error(err) }}
	ended := make(chan error, 1)
	go func() { ended <- d.Run(t.Context(), config) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	definition := parse(t, ferry)
	if err := server.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	object := parse(t, "{apiVersion: harbour.example/v1, kind: Ferry, metadata: {name: blue}}")
	object.SetNamespace(namespace)
	testenv.Await(t, func() string { // until the kind is established
		if err := server.Create(t.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	})
	owned := metav1.ObjectMeta{Namespace: namespace, Name: "blue", OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(object, object.GroupVersionKind()),
	}}
	secret := &corev1.Secret{ObjectMeta: owned, StringData: map[string]string{"password": "open sesame"}}
	settings := &corev1.ConfigMap{ObjectMeta: owned, Data: map[string]string{"colour": "blue"}}
	for _, child := range []client.Object{secret, settings} {
		if err := server.Create(t.Context(), child); err != nil {
			t.Fatal(err)
		}
	}
	testenv.Await(t, func() string { return missing(model, namespace, "Ferry", "ConfigMap", "Secret") })
	for _, object := range model.Since(0).Objects {
		if object.Kind == "Ferry" && (object.State != tree.Plain || !object.Fleet) {
			t.Errorf("an object without conditions is %+v", object)
		}
	}
	settings.Data["colour"] = "red"
	if err := server.Update(t.Context(), settings, client.FieldOwner("painter")); err != nil {
		t.Fatal(err)
	}
	secret.StringData = map[string]string{"password": "hunter2"}
	if err := server.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, func() string {
		text, err := json.Marshal(changes.since(0))
		if err != nil {
			return err.Error()
		}
		for _, hidden := range []string{"hunter2", "sesame", "aHVudGVyMg", "b3BlbiBzZXNhbWU"} {
			if strings.Contains(string(text), hidden) {
				t.Fatalf("a secret is told: %s", text)
			}
		}
		if !strings.Contains(string(text), `"path":"data.colour","old":"\"blue\"","new":"\"red\""`) || !strings.Contains(string(text), "painter") {
			return "the change of the ConfigMap is not told: " + string(text)
		}
		return ""
	})
	// A kind that is not defined any more leaves nothing behind.
	if err := server.Delete(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, func() string {
		for _, object := range model.Since(0).Objects {
			if object.Kind == "Ferry" {
				return "there is still a Ferry " + object.Name
			}
		}
		return ""
	})
	fleettest.AwaitGone(t, server, definition) // so that the test can run again on this cluster
}

// missing says which kinds there are no objects of in a namespace.
func missing(model *tree.Model, namespace string, kinds ...string) string {
	for _, object := range model.Since(0).Objects {
		if object.Namespace == namespace {
			kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == object.Kind })
		}
	}
	if len(kinds) > 0 {
		return "there is no " + strings.Join(kinds, ", ")
	}
	return ""
}
