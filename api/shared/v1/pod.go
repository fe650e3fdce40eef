// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
)

// PodMetadata holds labels and annotations of pods.
type PodMetadata struct {
	// labels of the pods. Labels that controllers use to find the pods are added and cannot be set here:
	// app.kubernetes.io/name, app.kubernetes.io/instance, app.kubernetes.io/managed-by, opdock.dev/deployment,
	// pod-template-hash, controller-revision-hash and apps.kubernetes.io/pod-index.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by', 'opdock.dev/deployment', 'pod-template-hash', 'controller-revision-hash', 'apps.kubernetes.io/pod-index'].exists(k, k in self)",message="these labels are reserved for controllers",messageExpression="'these labels are reserved for controllers: %s'.format([['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by', 'opdock.dev/deployment', 'pod-template-hash', 'controller-revision-hash', 'apps.kubernetes.io/pod-index'].filter(k, k in self)])"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of the pods.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	Annotations map[string]string `json:"annotations,omitempty"`
}

// PodTemplate describes pods.
type PodTemplate struct {
	// metadata of the pods: labels and annotations.
	//
	// +optional
	Metadata *PodMetadata `json:"metadata,omitempty"`

	// spec defines what runs in the pods, and how and where.
	//
	// +required
	Spec PodSpec `json:"spec"`
}

// PodSpec defines what runs in a pod, and how and where.
//
// +kubebuilder:validation:XValidation:rule="self.containers.all(c, !has(c.restartPolicy))",message="restartPolicy can only be set for initContainers; containers are always restarted",fieldPath=".containers"
// +kubebuilder:validation:XValidation:rule="!has(self.initContainers) || self.initContainers.all(i, !self.containers.exists(c, c.name == i.name))",message="a container and an init container have the same name",fieldPath=".initContainers"
// +kubebuilder:validation:XValidation:rule="self.containers.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name)))",message="a volumeMount names a volume that is not in volumes",fieldPath=".containers"
// +kubebuilder:validation:XValidation:rule="!has(self.initContainers) || self.initContainers.all(c, !has(c.volumeMounts) || c.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name)))",message="a volumeMount names a volume that is not in volumes",fieldPath=".initContainers"
type PodSpec struct {
	// containers of the pod.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Containers []Container `json:"containers"`

	// initContainers run one after another before the containers start. One with restartPolicy Always is a
	// sidecar: it starts in order and then keeps running alongside the containers.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	InitContainers []Container `json:"initContainers,omitempty"`

	// securityContext holds security settings of the pod as a whole, and defaults for its containers.
	//
	// +optional
	SecurityContext *PodSecurityContext `json:"securityContext,omitempty"`

	// affinity to nodes, and to or from other pods.
	//
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	PodSettings `json:",inline"`
}

// PodSettings holds the settings of a pod other than its containers. AppService embeds it without a template.
type PodSettings struct {
	// volumes that the containers can mount.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Volumes []Volume `json:"volumes,omitempty"`

	// serviceAccountName is the ServiceAccount that the pods run as. Default: "default".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// automountServiceAccountToken defines whether the pods get a token for the API server. Default: the setting of
	// the ServiceAccount.
	//
	// +optional
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty"`

	// imagePullSecrets are Secrets in the same namespace that are used to pull images.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []ObjectName `json:"imagePullSecrets,omitempty"`

	// terminationGracePeriodSeconds is how long the containers may take to stop before they are killed.
	// Default: 30.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// nodeSelector are the labels that a node must have for the pods to run there.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MaxProperties=64
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// tolerations let the pods run on nodes with matching taints.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints define how the pods spread over zones, nodes or other domains.
	//
	// +optional
	// +listType=map
	// +listMapKey=topologyKey
	// +listMapKey=whenUnsatisfiable
	// +kubebuilder:validation:MaxItems=16
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the PriorityClass of the pods. Default: the cluster's default class, if it has one.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// runtimeClassName is the RuntimeClass that the containers run with.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	RuntimeClassName *string `json:"runtimeClassName,omitempty"`

	// schedulerName is the scheduler that places the pods. Default: default-scheduler.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SchedulerName string `json:"schedulerName,omitempty"`

	// hostNetwork runs the pods in their node's network, with the node's addresses and ports.
	//
	// +optional
	HostNetwork bool `json:"hostNetwork,omitempty"`

	// dnsPolicy defines how the pods resolve names. Default: ClusterFirst.
	//
	// +optional
	// +kubebuilder:validation:Enum=ClusterFirst;ClusterFirstWithHostNet;Default
	DNSPolicy corev1.DNSPolicy `json:"dnsPolicy,omitempty"`

	// hostAliases are entries of the pods' hosts file.
	//
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=32
	HostAliases []HostAlias `json:"hostAliases,omitempty"`

	// enableServiceLinks adds the addresses of all Services of the namespace to the containers' environment.
	// Default: true.
	//
	// +optional
	EnableServiceLinks *bool `json:"enableServiceLinks,omitempty"`
}

// HostAlias maps host names to an address in the pods' hosts file.
type HostAlias struct {
	// ip is the address.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	IP string `json:"ip"`

	// hostnames are the names of the address.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Hostnames []string `json:"hostnames,omitempty"`
}

// ObjectName names an object in the same namespace.
type ObjectName struct {
	// name of the object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
