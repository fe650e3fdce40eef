// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	// configMap makes files of the keys of a ConfigMap.
	//
	// +optional
	ConfigMap *ConfigMapVolume `json:"configMap,omitempty"`

	// secret makes files of the keys of a Secret.
	//
	// +optional
	Secret *SecretVolume `json:"secret,omitempty"`

	// emptyDir is an empty folder that lives as long as the pod.
	//
	// +optional
	EmptyDir *EmptyDirVolume `json:"emptyDir,omitempty"`

	// persistentVolumeClaim is storage that a claim in the same namespace stands for.
	//
	// +optional
	PersistentVolumeClaim *ClaimVolume `json:"persistentVolumeClaim,omitempty"`

	// projected puts several sources into one folder.
	//
	// +optional
	Projected *ProjectedVolume `json:"projected,omitempty"`

	// downwardAPI makes files of fields of the pod.
	//
	// +optional
	DownwardAPI *DownwardAPIVolume `json:"downwardAPI,omitempty"`

	// hostPath is a file or folder of the node. Most clusters forbid it for good reasons.
	//
	// +optional
	HostPath *HostPathVolume `json:"hostPath,omitempty"`

	// csi is an ephemeral volume of a CSI driver, such as one for secrets.
	//
	// +optional
	CSI *CSIVolume `json:"csi,omitempty"`
}

// KeyToPath makes a file of a key.
type KeyToPath struct {
	// key that becomes a file.
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

	// mode holds the file's permission bits, as a decimal or, in YAML, an octal number. Default: those of the
	// volume.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	Mode *int32 `json:"mode,omitempty"`
}

// ConfigMapVolume makes files of the keys of a ConfigMap.
type ConfigMapVolume struct {
	OptionalObjectName `json:",inline"`

	// items are the keys that become files. Default: all, each under its own name.
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

// SecretVolume makes files of the keys of a Secret.
type SecretVolume struct {
	// secretName is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// optional lets the pod start also if there is no such Secret or key.
	//
	// +optional
	Optional *bool `json:"optional,omitempty"`

	// items are the keys that become files. Default: all, each under its own name.
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

// EmptyDirVolume is an empty folder that lives as long as the pod.
type EmptyDirVolume struct {
	// medium Memory keeps it in memory, which counts as the containers' memory. Default: the node's disk.
	//
	// +optional
	// +kubebuilder:validation:Enum="";Memory;HugePages
	Medium corev1.StorageMedium `json:"medium,omitempty"`

	// sizeLimit is the most that it may hold. Default: no limit.
	//
	// +optional
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// ClaimVolume is storage that a PersistentVolumeClaim stands for.
type ClaimVolume struct {
	// claimName is the name of the claim.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`

	// readOnly forbids all containers to write to it.
	//
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}

// ProjectedVolume puts several sources into one folder.
type ProjectedVolume struct {
	// sources that are put into the folder.
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
	// configMap makes files of the keys of a ConfigMap.
	//
	// +optional
	ConfigMap *KeyProjection `json:"configMap,omitempty"`

	// secret makes files of the keys of a Secret.
	//
	// +optional
	Secret *KeyProjection `json:"secret,omitempty"`

	// downwardAPI makes files of fields of the pod.
	//
	// +optional
	DownwardAPI *DownwardAPIProjection `json:"downwardAPI,omitempty"`

	// serviceAccountToken is a token of the pod's ServiceAccount that is renewed before it expires.
	//
	// +optional
	ServiceAccountToken *TokenProjection `json:"serviceAccountToken,omitempty"`
}

// KeyProjection makes files of the keys of a ConfigMap or Secret.
type KeyProjection struct {
	OptionalObjectName `json:",inline"`

	// items are the keys that become files. Default: all, each under its own name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Items []KeyToPath `json:"items,omitempty"`
}

// DownwardAPIProjection makes files of fields of the pod.
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

// DownwardAPIVolume makes files of fields of the pod.
type DownwardAPIVolume struct {
	DownwardAPIProjection `json:",inline"`

	// defaultMode holds the permission bits of the files. Default: 0644.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	DefaultMode *int32 `json:"defaultMode,omitempty"`
}

// DownwardAPIFile makes a file of a field of the pod.
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

	// mode holds the file's permission bits. Default: those of the volume.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=511
	Mode *int32 `json:"mode,omitempty"`
}

// HostPathVolume is a file or folder of the node.
type HostPathVolume struct {
	// path on the node.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// type of what has to be there or is created. Default: anything, unchecked.
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

	// readOnly forbids all containers to write to it. Default: false.
	//
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// fsType is the file system to mount. Default: as the driver decides.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FSType *string `json:"fsType,omitempty"`

	// volumeAttributes are settings for the driver.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	VolumeAttributes map[string]string `json:"volumeAttributes,omitempty"`

	// nodePublishSecretRef is a Secret in the same namespace that the driver is given.
	//
	// +optional
	NodePublishSecretRef *ObjectName `json:"nodePublishSecretRef,omitempty"`
}
