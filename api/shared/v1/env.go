// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// EnvVar is an environment variable of a container.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.value) && has(self.valueFrom))",message="value and valueFrom cannot both be set"
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

	// valueFrom is the source of the value.
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

	// optional lets the container start even if the object or key does not exist.
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

// ResourceFieldRef names a request or limit of a container.
type ResourceFieldRef struct {
	// containerName is the container of the request or limit. It is required in volumes; in environment variables
	// the default is the same container.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	ContainerName string `json:"containerName,omitempty"`

	// resource is the request or limit, such as limits.cpu or requests.memory.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// divisor is the unit of the result, such as 1m or 1Mi. Default: 1.
	//
	// +optional
	Divisor *Amount `json:"divisor,omitempty"`
}

// EnvFromSource sets environment variables from all keys of a ConfigMap or Secret.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapRef) != has(self.secretRef)",message="exactly one of configMapRef and secretRef must be set"
type EnvFromSource struct {
	// prefix of each variable name.
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

// OptionalObjectName names an object in the same namespace, which can be optional.
type OptionalObjectName struct {
	// name of the object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// optional lets the container start even if the object does not exist.
	//
	// +optional
	Optional *bool `json:"optional,omitempty"`
}
