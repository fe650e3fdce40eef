// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Some operators, and some scenarios, create CRDs. Objects of such a kind are followed as soon as the API server serves it.

const (
	definitions      = "customresourcedefinitions"
	definitionsGroup = "apiextensions.k8s.io"
)

// followDefinedLocked starts a watch for the kind that a CRD defines, unless there is one already. It ignores other objects.
func (w *World) followDefinedLocked(ctx context.Context, key Key) {
	if key.Group != definitionsGroup || key.Resource != definitions {
		return
	}
	crd := w.objects[key]
	if crd == nil || crd.GetDeletionTimestamp() != nil || !isEstablished(crd) {
		return
	}
	resource, kind := definedBy(crd)
	if resource.Version == "" || w.watched[resource.GroupResource()] || slices.Contains(unseen, resource.Resource) {
		return
	}
	w.watched[resource.GroupResource()] = true
	w.blind++ // until it is known what is there
	w.work.Go(func() {
		f := &following{world: w, resource: resource, kind: kind, began: time.Now(), tell: func(error) {}, isNew: true, blind: true}
		f.follow(ctx)
	})
}

// forget is called when the watch of a kind has ended. If the CRD was recreated in the meantime, it starts a new watch.
func (w *World) forget(ctx context.Context, resource schema.GroupResource) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.watched, resource)
	w.followDefinedLocked(ctx, definitionOf(resource))
}

// isDefined reports whether the cluster has the CRD of a kind.
func (w *World) isDefined(resource schema.GroupResource) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.objects[definitionOf(resource)] != nil
}

func definitionOf(resource schema.GroupResource) Key {
	return Key{Group: definitionsGroup, Resource: definitions, Kind: "CustomResourceDefinition", Name: resource.String()}
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == "True"
	})
}

// definedBy returns what a CRD defines, in the version that discovery prefers.
func definedBy(crd *unstructured.Unstructured) (resource schema.GroupVersionResource, kind string) {
	resource.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	resource.Resource, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "plural")
	kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, one := range versions {
		fields, _ := one.(map[string]any)
		name, _ := fields["name"].(string)
		if fields["served"] == true && (resource.Version == "" || version.CompareKubeAwareVersionStrings(name, resource.Version) > 0) {
			resource.Version = name
		}
	}
	return resource, kind
}
