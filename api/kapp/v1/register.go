// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "kanggege.k8sio.com"

// GroupVersion is the API group and version of this package. SchemeGroupVersion is the same under the name
// that generated clients use.
var (
	GroupVersion       = schema.GroupVersion{Group: GroupName, Version: "v1"}
	SchemeGroupVersion = GroupVersion
)

// SchemeBuilder collects what AddToScheme adds; AddToScheme makes a scheme know the types of this package.
var (
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	AddToScheme   = SchemeBuilder.AddToScheme
)

// Resource returns the full name of a resource of this group, as errors name it.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &KAPP{}, &KAPPList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
