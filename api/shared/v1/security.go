// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodSecurityProfile selects the security settings that the controller adds to those of the spec, and what the spec
// must not request.
//
// +kubebuilder:validation:Enum=RuntimeDefault;Restricted;AsWritten
type PodSecurityProfile string

const (
	// PodSecurityRuntimeDefault adds the container runtime's seccomp profile, with which every image runs.
	PodSecurityRuntimeDefault PodSecurityProfile = "RuntimeDefault"

	// PodSecurityRestricted adds everything that the restricted Pod Security Standard requires, and rejects a spec
	// that contradicts it.
	PodSecurityRestricted PodSecurityProfile = "Restricted"

	// PodSecurityAsWritten adds nothing.
	PodSecurityAsWritten PodSecurityProfile = "AsWritten"
)

// PodSecurityContext holds security settings of a pod, and defaults for its containers.
type PodSecurityContext struct {
	// runAsNonRoot prevents the start of containers that would run as user 0.
	//
	// +optional
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`

	// runAsUser is the user ID of the containers' processes. Default: set by the image.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the group ID of the containers' processes. Default: set by the image.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// fsGroup is the group that owns the files in volumes that support it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	FSGroup *int64 `json:"fsGroup,omitempty"`

	// fsGroupChangePolicy defines when the owner of those files is set. Default: Always.
	//
	// +optional
	// +kubebuilder:validation:Enum=OnRootMismatch;Always
	FSGroupChangePolicy *corev1.PodFSGroupChangePolicy `json:"fsGroupChangePolicy,omitempty"`

	// supplementalGroups are further groups of the containers' processes.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	SupplementalGroups []int64 `json:"supplementalGroups,omitempty"`

	// seccompProfile limits the system calls of the containers.
	//
	// +optional
	SeccompProfile *SecurityProfile `json:"seccompProfile,omitempty"`

	// sysctls are kernel settings of the pod.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Sysctls []Sysctl `json:"sysctls,omitempty"`
}

// Sysctl is a kernel setting.
type Sysctl struct {
	// name of the setting.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// value that it is set to.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// SecurityContext holds security settings of a container.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.privileged) && self.privileged && has(self.allowPrivilegeEscalation) && !self.allowPrivilegeEscalation)",message="allowPrivilegeEscalation cannot be false for a privileged container"
type SecurityContext struct {
	// allowPrivilegeEscalation lets a process gain more privileges than its parent. Default: true.
	//
	// +optional
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty"`

	// capabilities to add to and drop from the container runtime's default.
	//
	// +optional
	Capabilities *Capabilities `json:"capabilities,omitempty"`

	// privileged gives the container nearly the same access as root on its node. Default: false.
	//
	// +optional
	Privileged *bool `json:"privileged,omitempty"`

	// readOnlyRootFilesystem prevents writes outside of volumes. Default: false.
	//
	// +optional
	ReadOnlyRootFilesystem *bool `json:"readOnlyRootFilesystem,omitempty"`

	// runAsNonRoot prevents the start of the container if it would run as user 0.
	//
	// +optional
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`

	// runAsUser is the user ID of the container's processes. Default: set by the image.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunAsUser *int64 `json:"runAsUser,omitempty"`

	// runAsGroup is the group ID of the container's processes. Default: set by the image.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`

	// seccompProfile limits the system calls of the container.
	//
	// +optional
	SeccompProfile *SecurityProfile `json:"seccompProfile,omitempty"`

	// appArmorProfile limits what the container may do on nodes with AppArmor.
	//
	// +optional
	AppArmorProfile *SecurityProfile `json:"appArmorProfile,omitempty"`
}

// Capabilities to add and drop.
type Capabilities struct {
	// add lists capabilities to add.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Add []corev1.Capability `json:"add,omitempty"`

	// drop lists capabilities to drop; ALL means all of them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Drop []corev1.Capability `json:"drop,omitempty"`
}

// SecurityProfile names a seccomp or AppArmor profile.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Localhost') == has(self.localhostProfile)",message="localhostProfile must be set if type is Localhost, and cannot be set otherwise"
type SecurityProfile struct {
	// type of profile: the container runtime's default, one on the node, or none.
	//
	// +required
	// +kubebuilder:validation:Enum=RuntimeDefault;Localhost;Unconfined
	Type string `json:"type"`

	// localhostProfile is the profile on the node: a path below the kubelet's seccomp folder, or the name of a
	// loaded AppArmor profile.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	LocalhostProfile *string `json:"localhostProfile,omitempty"`
}
