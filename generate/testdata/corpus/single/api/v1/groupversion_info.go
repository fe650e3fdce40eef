// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is an API in the layout that kubebuilder gives to a project with one group.
//
// +kubebuilder:object:generate=true
// +groupName=garden.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The group, as kubebuilder registers it.
var (
	GroupVersion       = schema.GroupVersion{Group: "garden.example.com", Version: "v1"}
	SchemeGroupVersion = GroupVersion
	SchemeBuilder      = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &KAPP{}, &KAPPList{}, &Plot{}, &PlotList{})
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource is what generated listers call.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}
