// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/crdspec/crdtest"
	"github.com/opdock/opdock/internal/testenv"
)

// The API server accepts all changes that are proposed for an AppService and a database, both to objects that exist and
// as new objects.
func TestServerRefusesNoProposal(t *testing.T) {
	testenv.ControlPlane(t)
	config := clustertest.Shared(t).Config()
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	installed := map[string]bool{}
	for _, s := range subjects(t) {
		if kind := s.object.GetKind(); kind != "AppService" && kind != "Database" {
			continue
		}
		resource := schema.GroupVersionResource{Group: s.definition.Spec.Group, Version: s.version.Name, Resource: s.definition.Spec.Names.Plural}
		if !installed[s.definition.Name] {
			installed[s.definition.Name] = true
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.definition)
			if err != nil {
				t.Fatal(err)
			}
			fields["apiVersion"], fields["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
			if _, err := client.Resource(crdtest.Resource).Create(t.Context(), &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			defer crdtest.Remove(t, client, s.definition.Name) // once for each kind
		}
		testenv.Eventually(t, s.definition.Name+" is served", func() bool { return crdspec.IsServed(served, resource) })
		t.Run(s.name, func(t *testing.T) {
			kind := client.Resource(resource).Namespace(clustertest.Namespace(t))
			stored, err := kind.Create(t.Context(), s.object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if err != nil {
				t.Fatal(err)
			}
			changes := s.propose(Options{Max: 250})
			refused := 0
			for _, change := range changes {
				update, err := change.Apply(s.object.Object)
				if err != nil {
					t.Fatal(err)
				}
				object := &unstructured.Unstructured{Object: update}
				object.SetResourceVersion(stored.GetResourceVersion())
				_, err = kind.Update(t.Context(), object, metav1.UpdateOptions{
					FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
				})
				if err == nil {
					object.SetResourceVersion("")
					object.SetName(s.object.GetName() + "-2")
					_, err = kind.Create(t.Context(), object, metav1.CreateOptions{
						FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll},
					})
				}
				if err != nil {
					refused++
					t.Errorf("%s: %v", change, err)
				}
			}
			t.Logf("the API server refuses %d of %d proposals", refused, len(changes))
		})
	}
}
