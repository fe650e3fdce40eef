// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// Volume is a folder that the containers of a pod can mount.
type Volume struct {
	// name of the volume, which is unique in its pod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	VolumeSource `json:",inline"`
}

// VolumeSource is where a volume's content comes from.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.emptyDir), has(self.persistentVolumeClaim), has(self.projected), has(self.downwardAPI), has(self.hostPath), has(self.csi)].exists_one(x, x)",message="exactly one of configMap, secret, emptyDir, persistentVolumeClaim, projected, downwardAPI, hostPath and csi must be set"
type VolumeSource struct {
	// configMap exposes the keys of a ConfigMap as files.
	//
	// +optional
	ConfigMap *ConfigMapVolume `json:"configMap,omitempty"`

	// secret exposes the keys of a Secret as files.
	//
	// +optional
	Secret *SecretVolume `json:"secret,omitempty"`

	// emptyDir is an empty folder that exists as long as the pod.
	//
	// +optional
	EmptyDir *EmptyDirVolume `json:"emptyDir,omitempty"`

	// persistentVolumeClaim is the storage of a claim in the same namespace.
	//
	// +optional
	PersistentVolumeClaim *ClaimVolume `json:"persistentVolumeClaim,omitempty"`

	// projected combines several sources in one folder.
	//
	// +optional
	Projected *ProjectedVolume `json:"projected,omitempty"`

	// downwardAPI exposes fields of the pod as files.
	//
	// +optional
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty"`

	// hostPath is a file or folder on the node. Most clusters forbid it for security reasons.
	//
	// +optional
	HostPath *HostPathVolume `json:"hostPath,omitempty"`

	// csi is an ephemeral volume of a CSI driver, such as one for secrets.
	//
	// +optional
	CSI *CSIVolume `json:"csi,omitempty"`
}

// KeyToPath maps a key to a file.
type KeyToPath struct {
	// key to expose as a file.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`

	// path of the file in the volume.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// mode holds the file's permission bits, as a decimal or, in YAML, an octal number. Default: the volume's
	// defaultMode.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	Mode *int32 `json:"mode,omitempty"`
}

// ConfigMapVolume exposes the keys of a ConfigMap as files.
type ConfigMapVolume struct {
	OptionalObjectName `json:",inline"`

	// items are the keys to expose as files. Default: all, each under its own name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Items []KeyToPath `json:"items,omitempty"`

	// defaultMode holds the permission bits of the files. Default: 0644.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// SecretVolume exposes the keys of a Secret as files.
type SecretVolume struct {
	// secretName is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// optional lets the pod start even if the Secret or key does not exist.
	//
	// +optional
	Optional *bool `json:"optional,omitempty"`

	// items are the keys to expose as files. Default: all, each under its own name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Items []KeyToPath `json:"items,omitempty"`

	// defaultMode holds the permission bits of the files. Default: 0644.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// EmptyDirVolume is an empty folder that exists as long as the pod.
type EmptyDirVolume struct {
	// medium set to Memory keeps it in memory, which counts towards the containers' memory. Default: the node's disk.
	//
	// +optional
	// +kubebuilder:validation:Enum="";Memory;HugePages
	Medium corev1.StorageMedium `json:"medium,omitempty"`

	// sizeLimit is its maximum size. Default: no limit.
	//
	// +optional
	SizeLimit *Amount `json:"sizeLimit,omitempty"`
}

// ClaimVolume is the storage of a PersistentVolumeClaim.
type ClaimVolume struct {
	// claimName is the name of the claim.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// readOnly makes it read-only for all containers.
	//
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ProjectedVolume combines several sources in one folder.
type ProjectedVolume struct {
	// sources to combine.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Sources []Projection `json:"sources"`

	// defaultMode holds the permission bits of the files. Default: 0644.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// Projection is one source of a projected volume.
//
// +kubebuilder:validation:XValidation:rule="[has(self.configMap), has(self.secret), has(self.downwardAPI), has(self.serviceAccountToken)].exists_one(x, x)",message="exactly one of configMap, secret, downwardAPI and serviceAccountToken must be set"
type Projection struct {
	// configMap exposes the keys of a ConfigMap as files.
	//
	// +optional
	ConfigMap *KeyProjection `json:"configMap,omitempty"`

	// secret exposes the keys of a Secret as files.
	//
	// +optional
	Secret *KeyProjection `json:"secret,omitempty"`

	// downwardAPI exposes fields of the pod as files.
	//
	// +optional
	DownwardAPI *DownwardAPIProjection `json:"downwardAPI,omitempty"`

	// serviceAccountToken is a token of the pod's ServiceAccount that is renewed before it expires.
	//
	// +optional
	ServiceAccountToken *TokenProjection `json:"serviceAccountToken,omitempty"`
}

// KeyProjection exposes the keys of a ConfigMap or Secret as files.
type KeyProjection struct {
	OptionalObjectName `json:",inline"`

	// items are the keys to expose as files. Default: all, each under its own name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Items []KeyToPath `json:"items,omitempty"`
}

// DownwardAPIProjection exposes fields of the pod as files.
type DownwardAPIProjection struct {
	// items are the fields and their files.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Items []DownwardAPIFile `json:"items,omitempty"`
}

// TokenProjection is a token of the pod's ServiceAccount.
type TokenProjection struct {
	// audience that the token is for. Default: the API server.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Audience string `json:"audience,omitempty"`

	// expirationSeconds is how long a token is valid. Default: 3600.
	//
	// +optional
	// +kubebuilder:validation:Minimum=600
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`

	// path of the file in the volume.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`
}

// DownwardAPIVolume exposes fields of the pod as files.
type DownwardAPIVolume struct {
	DownwardAPIProjection `json:",inline"`

	// defaultMode holds the permission bits of the files. Default: 0644.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// DownwardAPIFile maps a field of the pod to a file.
//
// +kubebuilder:validation:XValidation:rule="has(self.fieldRef) != has(self.resourceFieldRef)",message="exactly one of fieldRef and resourceFieldRef must be set"
type DownwardAPIFile struct {
	// path of the file in the volume.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// fieldRef is the field of the pod.
	//
	// +optional
	FieldRef *FieldRef `json:"fieldRef,omitempty"`

	// resourceFieldRef is the limit or request of a container.
	//
	// +optional
	ResourceFieldRef *ResourceFieldRef `json:"resourceFieldRef,omitempty"`

	// mode holds the file's permission bits. Default: the volume's defaultMode.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	Mode *int32 `json:"mode,omitempty"`
}

// HostPathVolume is a file or folder on the node.
type HostPathVolume struct {
	// path on the node.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// type of the file or folder that must exist or is created. Default: any, unchecked.
	//
	// +optional
	// +kubebuilder:validation:Enum="";DirectoryOrCreate;Directory;FileOrCreate;File;Socket;CharDevice;BlockDevice
	Type *corev1.HostPathType `json:"type,omitempty"`
}

// CSIVolume is an ephemeral volume of a CSI driver.
type CSIVolume struct {
	// driver is the name of the CSI driver.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`

	// readOnly makes it read-only for all containers. Default: false.
	//
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// fsType is the file system to mount. Default: the driver's choice.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FSType *string `json:"fsType,omitempty"`

	// volumeAttributes are settings for the driver.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	VolumeAttributes map[string]string `json:"volumeAttributes,omitempty"`

	// nodePublishSecretRef is a Secret in the same namespace that is passed to the driver.
	//
	// +optional
	NodePublishSecretRef *ObjectName `json:"nodePublishSecretRef,omitempty"`
}
