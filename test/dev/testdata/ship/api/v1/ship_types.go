// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 has a kind to try opdock dev with.
//
// +kubebuilder:object:generate=true
// +groupName=harbour.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "harbour.example.com", Version: "v1"}

// ShipSpec is what a ship is to do.
type ShipSpec struct {
	// Greeting is what it says.
	Greeting string `json:"greeting,omitempty"`
	// Crew is set by a webhook.
	// +optional
	Crew int32 `json:"crew,omitempty"`
}

// Ship greets whoever it meets.
//
// +kubebuilder:object:root=true
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ShipSpec `json:"spec,omitempty"`
}

// ShipList is a list of ships.
//
// +kubebuilder:object:root=true
type ShipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Ship `json:"items"`
}

// AddToScheme registers the kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Ship{}, &ShipList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
