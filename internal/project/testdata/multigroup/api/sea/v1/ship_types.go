// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ShipSpec is what is wanted.
type ShipSpec struct {
	// +kubebuilder:validation:Minimum=1
	Size int32 `json:"size,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status

// Ship is a kind of this project.
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ShipSpec `json:"spec,omitempty"`
}
