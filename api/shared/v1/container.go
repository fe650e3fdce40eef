// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// Container is a container of a pod.
type Container struct {
	// name of the container, which is unique in its pod.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// image that the container runs. Default: the image of the object that this template belongs to.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image,omitempty"`

	// restartPolicy set to Always makes an init container a sidecar. It cannot be set for other containers.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy,omitempty"`

	// ports that the container listens on.
	//
	// +optional
	// +listType=map
	// +listMapKey=containerPort
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.exists_one(q, has(q.name) && q.name == p.name))",message="port names must be unique"
	Ports []ContainerPort `json:"ports,omitempty"`

	// env are the container's environment variables.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Env []EnvVar `json:"env,omitempty"`

	ContainerSettings `json:",inline"`
}

// ContainerSettings holds the settings of a container other than its name, image, ports and environment variables.
type ContainerSettings struct {
	// command to run instead of the image's entry point.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Command []string `json:"command,omitempty"`

	// args of the command, instead of the image's.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Args []string `json:"args,omitempty"`

	// workingDir is the folder that the command starts in. Default: set by the image.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	WorkingDir string `json:"workingDir,omitempty"`

	// imagePullPolicy defines when the image is pulled. Default: Always if its tag is latest or there is none,
	// otherwise IfNotPresent.
	//
	// +optional
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// envFrom sets environment variables from all keys of ConfigMaps and Secrets. A later source overrides an earlier
	// one, and a variable that is listed explicitly overrides both.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	EnvFrom []EnvFromSource `json:"envFrom,omitempty"`

	// resources that the container requests and may use.
	//
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// volumeMounts are the volumes to mount into the container.
	//
	// +optional
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:MaxItems=32
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`

	// livenessProbe checks whether the container must be restarted.
	//
	// +optional
	LivenessProbe *Probe `json:"livenessProbe,omitempty"`

	// readinessProbe checks whether the container can serve requests.
	//
	// +optional
	ReadinessProbe *Probe `json:"readinessProbe,omitempty"`

	// startupProbe checks whether the container has started. The other probes wait for it.
	//
	// +optional
	StartupProbe *Probe `json:"startupProbe,omitempty"`

	// lifecycle holds actions after the container starts and before it stops.
	//
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

	// securityContext holds security settings of the container, which override those of the pod.
	//
	// +optional
	SecurityContext *SecurityContext `json:"securityContext,omitempty"`

	// terminationMessagePolicy set to FallbackToLogsOnError reports the end of the log when a container fails without a
	// termination message. Default: File.
	//
	// +optional
	// +kubebuilder:validation:Enum=File;FallbackToLogsOnError
	TerminationMessagePolicy corev1.TerminationMessagePolicy `json:"terminationMessagePolicy,omitempty"`
}

// ContainerPort is a port that a container listens on.
type ContainerPort struct {
	// name of the port, which Services and probes can refer to.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^([0-9]+-?)*[a-z](-?[a-z0-9])*$`
	Name string `json:"name,omitempty"`

	// containerPort is the number of the port.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ContainerPort int32 `json:"containerPort"`

	// protocol of the port.
	//
	// +optional
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// hostPort exposes this port on the node.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	HostPort int32 `json:"hostPort,omitempty"`
}

// Resources are the amounts that a container requests and may use.
type Resources struct {
	// requests are reserved for the container on its node, by resource, such as cpu and memory.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Requests map[corev1.ResourceName]Amount `json:"requests,omitempty"`

	// limits are the maximum that the container may use, by resource, such as cpu and memory.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Limits map[corev1.ResourceName]Amount `json:"limits,omitempty"`
}

// VolumeMount mounts a volume into a container.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.subPath) && has(self.subPathExpr))",message="subPath and subPathExpr cannot both be set"
type VolumeMount struct {
	// name of the volume.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// mountPath is the path of the volume in the container.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^[^:]+$`
	MountPath string `json:"mountPath"`

	// subPath is the folder or file in the volume that is mounted. Default: all of it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	SubPath string `json:"subPath,omitempty"`

	// subPathExpr is a subPath in which $(NAME) is replaced by the container's environment variable.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	SubPathExpr string `json:"subPathExpr,omitempty"`

	// readOnly mounts the volume read-only.
	//
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// mountPropagation defines whether later mounts propagate between node and container. Default: None.
	//
	// +optional
	// +kubebuilder:validation:Enum=None;HostToContainer;Bidirectional
	MountPropagation *corev1.MountPropagationMode `json:"mountPropagation,omitempty"`
}
