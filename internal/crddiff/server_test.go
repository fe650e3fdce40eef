// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

var shipResource = schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "ships"}

// An upgrade on the real API server: what Pruned and Validate say about stored objects is what happens to them.
func TestServerAgrees(t *testing.T) {
	testenv.ControlPlane(t)
	config := clustertest.Shared(t).Config()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := client.Resource(crdtest.Resource).Create(t.Context(), manifest(t, "old.yaml"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer crdtest.Remove(t, client, installed.GetName())
	testenv.Eventually(t, "ships are served", func() bool { return crdspec.IsServed(served, shipResource) })
	kind := client.Resource(shipResource).Namespace(clustertest.Namespace(t))
	var stored []*unstructured.Unstructured
	for _, ship := range ships(t) {
		created, err := kind.Create(t.Context(), ship, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, created)
	}

	spec, _, _ := unstructured.NestedMap(manifest(t, "new.yaml").Object, "spec")
	testenv.Eventually(t, "the CRD is upgraded", func(ctx context.Context) error {
		current, err := client.Resource(crdtest.Resource).Get(ctx, installed.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Object["spec"] = runtime.DeepCopyJSON(spec)
		_, err = client.Resource(crdtest.Resource).Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
	// The new schema is in effect when its default shows.
	testenv.Eventually(t, "the new schema is in effect", func(ctx context.Context) error {
		read, err := kind.Get(ctx, "fine", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if owner, _, _ := unstructured.NestedString(read.Object, "spec", "owner"); owner != "nobody" {
			return fmt.Errorf("the owner is %q", owner)
		}
		return nil
	})

	updated := parse(t, file(t, "new.yaml"))
	invalid := map[string]Invalid{}
	for _, one := range Validate(updated, stored) {
		invalid[one.Object.GetName()] = one
	}
	for _, object := range stored {
		t.Run(object.GetName(), func(t *testing.T) {
			read, err := kind.Get(t.Context(), object.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lost := missing("", object.Object, read.Object)
			if pruned := slices.Sorted(slices.Values(Pruned(updated, object))); !reflect.DeepEqual(pruned, lost) {
				t.Errorf("Pruned says %q, the API server lost %q", pruned, lost)
			}

			// Creating a copy shows what the API server says without ratcheting.
			again := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": map[string]any{"name": object.GetName() + "-2"},
			}}
			if spec, has := object.Object["spec"]; has {
				again.Object["spec"] = spec
			}
			_, err = kind.Create(t.Context(), again, metav1.CreateOptions{
				DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationIgnore,
			})
			said, isInvalid := invalid[object.GetName()]
			switch {
			case err == nil && isInvalid:
				t.Errorf("Validate says %q, the API server accepts it", said.Errors)
			case err != nil && !apierrors.IsInvalid(err):
				t.Errorf("another error: %v", err)
			case err != nil && !isInvalid:
				t.Errorf("Validate accepts it, the API server says %v", err)
			case err != nil:
				for _, one := range said.Errors {
					if !strings.Contains(err.Error(), one) {
						t.Errorf("Validate says %q, the API server %v", one, err)
					}
				}
			}
		})
	}
	t.Logf("%d of %d objects are invalid after the upgrade", len(invalid), len(stored))
}

func manifest(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parse(t, file(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}
}

// missing returns the paths that a value has and another one has not, sorted. What is missing as a whole is listed once.
func missing(path string, in, from any) []string {
	var lost []string
	switch value := in.(type) {
	case map[string]any:
		other, _ := from.(map[string]any)
		for name, field := range value {
			if path == "" && name == "metadata" {
				continue
			}
			if _, has := other[name]; !has {
				lost = append(lost, child(path, name))
				continue
			}
			lost = append(lost, missing(child(path, name), field, other[name])...)
		}
	case []any:
		other, _ := from.([]any)
		for at, element := range value {
			if at < len(other) {
				lost = append(lost, missing(fmt.Sprintf("%s[%d]", path, at), element, other[at])...)
			}
		}
	}
	slices.Sort(lost)
	return lost
}
