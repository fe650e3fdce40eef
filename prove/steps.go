// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/engine"
)

// steps makes a scenario of samples: they are created, changed and deleted.
func steps(e *engine.Options, samples, definitions []*unstructured.Unstructured, namespace string) {
	scopes := map[string]string{}
	for _, definition := range definitions {
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		scopes[group+"/"+kind], _, _ = unstructured.NestedString(definition.Object, "spec", "scope")
	}
	var all []*unstructured.Unstructured
	for _, sample := range samples {
		sample = sample.DeepCopy()
		if spec, found := sample.Object["spec"]; found && spec == nil {
			sample.Object["spec"] = map[string]any{} // kubebuilder writes samples with nothing but a comment there
		}
		scope, own := scopes[sample.GroupVersionKind().Group+"/"+sample.GetKind()]
		if sample.GetNamespace() == "" && scope != "Cluster" {
			sample.SetNamespace(namespace)
		}
		all = append(all, sample)
		if own {
			e.Subjects = append(e.Subjects, sample)
		} else {
			e.Others = append(e.Others, sample)
		}
	}
	each := func(objects []*unstructured.Unstructured, do func(context.Context, client.Client, *unstructured.Unstructured) error) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			for _, object := range objects {
				if err := do(ctx, c, object); err != nil {
					return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
				}
			}
			return nil
		}
	}
	e.Steps = []engine.Step{
		{Name: "create the samples", Do: each(all, func(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
			return c.Create(ctx, object.DeepCopy())
		})},
		{Name: "change the samples", Do: each(e.Subjects, change)},
		{Name: "delete the samples", Ends: true, Do: each(all, func(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
			return client.IgnoreNotFound(c.Delete(ctx, object.DeepCopy()))
		})},
	}
}

// preferred are integers whose change means most.
var preferred = []string{"replicas", "size", "count", "podReplicas"}

// change adds one to an integer of a spec, or annotates an object that has none.
func change(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return err
	}
	spec, _, _ := unstructured.NestedMap(live.Object, "spec")
	for _, field := range append(preferred, slices.Sorted(maps.Keys(spec))...) {
		number, ok := spec[field].(int64)
		if !ok {
			continue
		}
		changed := live.DeepCopy()
		if err := unstructured.SetNestedField(changed.Object, number+1, "spec", field); err != nil {
			continue
		}
		err := c.Patch(ctx, changed, client.MergeFrom(live))
		if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
			return err
		}
	}
	changed := live.DeepCopy()
	changed.SetAnnotations(map[string]string{"opdock.dev/changed": "true"})
	return c.Patch(ctx, changed, client.MergeFrom(live))
}
