// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DeploymentStrategy defines how a Deployment replaces old pods by new ones.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'RollingUpdate' || !has(self.rollingUpdate)",message="rollingUpdate can only be set if type is RollingUpdate"
type DeploymentStrategy struct {
	// type of strategy: RollingUpdate replaces pods gradually, Recreate stops all old pods first.
	//
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:Enum=RollingUpdate;Recreate
	Type appsv1.DeploymentStrategyType `json:"type,omitempty"`

	// rollingUpdate limits how many pods are replaced at a time.
	//
	// +optional
	RollingUpdate *RollingUpdate `json:"rollingUpdate,omitempty"`
}

// RollingUpdate limits how many pods are replaced at a time.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.maxUnavailable) && has(self.maxSurge) && string(self.maxUnavailable) in ['0', '0%'] && string(self.maxSurge) in ['0', '0%'])",message="maxUnavailable and maxSurge cannot both be 0: no pod could ever be replaced"
type RollingUpdate struct {
	// maxUnavailable is how many pods may be unavailable, as a number or a percentage such as 25%. Default: 25%.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 && int(self) <= 2147483647 : string(self).matches('^(100|[0-9]{1,2})%$')",message="must be a number from 0 to 2147483647, or a percentage from 0% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is how many pods may exist above the desired number, as a number or a percentage such as 25%. Default: 25%.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 && int(self) <= 2147483647 : string(self).matches('^[0-9]{1,4}%$')",message="must be a number from 0 to 2147483647, or a percentage"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}
