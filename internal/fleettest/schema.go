// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"context"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/testenv"
)

// CreateUnchecked creates an object as a schema without any rules would let it in. The kind has no rules until the test
// ends, so the test must not run in parallel with others.
func CreateUnchecked(t testing.TB, c client.Client, kind controller.Kind, object *unstructured.Unstructured) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	update := func(ctx context.Context, change func(version map[string]any)) {
		// Controllers of the cluster write its conditions after each change of the schema.
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := c.Get(ctx, client.ObjectKey{Name: kind.CRD()}, definition); err != nil {
				return err
			}
			versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
			if err != nil {
				return err
			}
			for _, version := range versions {
				change(version.(map[string]any))
			}
			if err := unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"); err != nil {
				return err
			}
			return c.Update(ctx, definition)
		})
		if err != nil {
			t.Fatalf("changing the schema of %s: %v", kind.Kind, err)
		}
	}
	strict := map[any]map[string]any{}
	update(t.Context(), func(version map[string]any) {
		strict[version["name"]] = maps.Clone(version)
		// They must be in the schema.
		delete(version, "selectableFields")
		version["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	})
	t.Cleanup(func() {
		update(context.Background(), func(version map[string]any) { maps.Copy(version, strict[version["name"]]) })
	})
	// The server takes a moment to use another schema.
	testenv.Await(t, func() string {
		if err := c.Create(t.Context(), object.DeepCopy()); err != nil {
			return err.Error()
		}
		return ""
	})
}
