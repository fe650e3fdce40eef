// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// EnvVar is an environment variable of a container.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.valueFrom))",message="value and valueFrom exclude each other"
type EnvVar struct {
	// name of the variable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^=]+$`
	Name string `json:"name"`

	// value of the variable. $(NAME) in it is replaced by the value of an earlier variable; $$ is a plain $.
	//
	// +optional
	Value string `json:"value,omitempty"`

	// valueFrom takes the value from elsewhere.
	//
	// +optional
	ValueFrom *EnvVarSource `json:"valueFrom,omitempty"`
}

// EnvVarSource is where the value of an environment variable comes from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMapKeyRef), has(self.secretKeyRef), has(self.fieldRef), has(self.resourceFieldRef)].exists_one(x, x)",message="exactly one of configMapKeyRef, secretKeyRef, fieldRef and resourceFieldRef must be set"
type EnvVarSource struct {
	// configMapKeyRef takes it from a key of a ConfigMap.
	//
	// +optional
	ConfigMapKeyRef *KeyRef `json:"configMapKeyRef,omitempty"`

	// secretKeyRef takes it from a key of a Secret.
	//
	// +optional
	SecretKeyRef *KeyRef `json:"secretKeyRef,omitempty"`

	// fieldRef takes it from a field of the pod.
	//
	// +optional
	FieldRef *FieldRef `json:"fieldRef,omitempty"`

	// resourceFieldRef takes it from the limits or requests of a container.
	//
	// +optional
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty"`
}

// KeyRef names a key of a ConfigMap or Secret in the same namespace.
type KeyRef struct {
	// name of the ConfigMap or Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// optional lets the container start also if there is no such object or key.
	//
	// +optional
	Optional *bool `json:"optional,omitempty"`
}

// FieldRef names a field of the pod.
type FieldRef struct {
	// fieldPath is the field, such as metadata.name, metadata.labels['app'], spec.nodeName or status.podIP.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	FieldPath string `json:"fieldPath"`
}

// ResourceFieldRef names an amount of a container.
type ResourceFieldRef struct {
	// containerName is the container whose amount it is. It is needed in volumes; in environment variables
	// the default is the same container.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ContainerName string `json:"containerName,omitempty"`

	// resource is the amount, such as limits.cpu or requests.memory.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// divisor is the unit of the result, such as 1m or 1Mi. Default: 1.
	//
	// +optional
	Divisor *resource.Quantity `json:"divisor,omitempty"`
}

// EnvFromSource makes environment variables of all keys of a ConfigMap or Secret.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.secretRef)",message="exactly one of configMapRef and secretRef must be set"
type EnvFromSource struct {
	// prefix is put before each key.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Prefix string `json:"prefix,omitempty"`

	// configMapRef is the ConfigMap with the keys.
	//
	// +optional
	ConfigMapRef *OptionalObjectName `json:"configMapRef,omitempty"`

	// secretRef is the Secret with the keys.
	//
	// +optional
	SecretRef *OptionalObjectName `json:"secretRef,omitempty"`
}

// OptionalObjectName names an object in the same namespace, which perhaps does not have to be there.
type OptionalObjectName struct {
	// name of the object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// optional lets the container start also if there is no such object.
	//
	// +optional
	Optional *bool `json:"optional,omitempty"`
}
