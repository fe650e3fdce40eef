// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdspec reads CustomResourceDefinitions that are unstructured objects, as manifests and dynamic clients have
// them.
package crdspec

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Spec is the spec of a CRD. Fields that the CRD does not set are empty.
type Spec struct {
	Group, Scope string // the scope is Namespaced or Cluster

	Kind, Plural, Singular string
	ShortNames             []string
	Versions               []Version
}

// Version is one version of a kind.
type Version struct {
	Name            string
	Served, Storage bool
	// Fields are all fields of the version in the CRD.
	Fields map[string]any
}

// Of returns the spec of a CRD.
func Of(definition *unstructured.Unstructured) Spec {
	var s Spec
	s.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	s.Scope, _, _ = unstructured.NestedString(definition.Object, "spec", "scope")
	s.Kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	s.Plural, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "plural")
	s.Singular, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "singular")
	s.ShortNames, _, _ = unstructured.NestedStringSlice(definition.Object, "spec", "names", "shortNames")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, one := range versions {
		fields, _ := one.(map[string]any)
		version := Version{Fields: fields}
		version.Name, _, _ = unstructured.NestedString(fields, "name")
		version.Served, _, _ = unstructured.NestedBool(fields, "served")
		version.Storage, _, _ = unstructured.NestedBool(fields, "storage")
		s.Versions = append(s.Versions, version)
	}
	return s
}

// GroupKind returns the kind that the CRD defines.
func (s Spec) GroupKind() schema.GroupKind { return schema.GroupKind{Group: s.Group, Kind: s.Kind} }

// ServedVersions returns the versions that clients can use, in the order of the CRD.
func (s Spec) ServedVersions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, version := range s.Versions {
		if version.Served {
			versions = append(versions, schema.GroupVersion{Group: s.Group, Version: version.Name})
		}
	}
	return versions
}

// IsServed reports whether clients can use all served versions. A CRD is Established a moment before that.
func (s Spec) IsServed(server discovery.ServerResourcesInterface) bool {
	return !slices.ContainsFunc(s.ServedVersions(), func(version schema.GroupVersion) bool {
		return !IsServed(server, version.WithResource(s.Plural))
	})
}

// IsServed reports whether the server lists a resource. It returns false if the server cannot be reached.
func IsServed(server discovery.ServerResourcesInterface, resource schema.GroupVersionResource) bool {
	list, err := server.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	return err == nil && slices.ContainsFunc(list.APIResources, func(one metav1.APIResource) bool { return one.Name == resource.Resource })
}

// IsEstablished reports whether the API server has accepted the CRD.
func IsEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		return condition["type"] == "Established" && condition["status"] == string(metav1.ConditionTrue)
	})
}
