// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// PodCluster is a set of pods with the stable names NAME-0, NAME-1 and so on.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=podclusters,singular=podcluster,shortName=podc,categories=opdock
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.podReplicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:selectablefield:JSONPath=`.spec.image`
// +kubebuilder:selectablefield:JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.podReplicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.updateRevision`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 58 && !self.metadata.name.contains('.')",message="pods are named NAME-0, NAME-1 and so on: the name must have at most 58 characters and no dots"
type PodCluster struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the set of pods should be.
	//
	// +required
	Spec PodClusterSpec `json:"spec"`

	// status is what the set of pods is. It is written by the controller.
	//
	// +optional
	// +kubebuilder:default={observedGeneration: 0}
	Status PodClusterStatus `json:"status,omitempty"`
}

// PodClusterList is a list of PodClusters.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type PodClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PodCluster `json:"items"`
}

// PodClusterSpec is what a set of pods should be.
//
// +kubebuilder:validation:XValidation:rule="has(self.serviceName) == has(oldSelf.serviceName) && (!has(self.serviceName) || self.serviceName == oldSelf.serviceName)",message="serviceName is part of the pods' host names and cannot be changed; create another PodCluster",fieldPath=".serviceName"
// +kubebuilder:validation:XValidation:rule="self.progressDeadlineSeconds > (has(self.minReadySeconds) ? self.minReadySeconds : 0)",message="progressDeadlineSeconds must be greater than minReadySeconds; otherwise, every pod would be replaced before it is available",fieldPath=".progressDeadlineSeconds"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !self.template.spec.?hostNetwork.orValue(false)",message="securityProfile Restricted forbids hostNetwork",fieldPath=".template.spec.hostNetwork"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !(!self.template.spec.?securityContext.?runAsNonRoot.orValue(true) || self.template.spec.?securityContext.?runAsUser.orValue(1) == 0 || self.template.spec.?securityContext.?seccompProfile.?type.orValue('none') == 'Unconfined')",message="securityProfile Restricted forbids runAsNonRoot: false, runAsUser: 0 and seccompProfile Unconfined",fieldPath=".template.spec.securityContext"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.spec.securityContext) || !has(self.template.spec.securityContext.sysctls) || self.template.spec.securityContext.sysctls.all(s, s.name in ['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies', 'net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start', 'net.ipv4.ip_local_reserved_ports', 'net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_keepalive_intvl', 'net.ipv4.tcp_keepalive_probes', 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'])",message="securityProfile Restricted forbids sysctls that the baseline Pod Security Standard does not list as safe",fieldPath=".template.spec.securityContext.sysctls"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.spec.volumes) || !self.template.spec.volumes.exists(v, has(v.hostPath))",message="securityProfile Restricted forbids hostPath",messageExpression="'securityProfile Restricted forbids hostPath: volumes %s'.format([self.template.spec.volumes.map(v, has(v.hostPath), v.name)])",fieldPath=".template.spec.volumes"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.metadata) || !has(self.template.metadata.annotations) || self.template.metadata.annotations.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/') || size(self.template.metadata.annotations[k]) == 0 || self.template.metadata.annotations[k] == 'runtime/default' || self.template.metadata.annotations[k].startsWith('localhost/'))",message="securityProfile Restricted forbids AppArmor annotations other than runtime/default and localhost/",fieldPath=".template.metadata.annotations"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !self.template.spec.containers.exists(c, c.?securityContext.?privileged.orValue(false) || c.?securityContext.?allowPrivilegeEscalation.orValue(false))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids securityContext.privileged and allowPrivilegeEscalation: containers %s'.format([self.template.spec.containers.map(c, c.?securityContext.?privileged.orValue(false) || c.?securityContext.?allowPrivilegeEscalation.orValue(false), c.name)])",fieldPath=".template.spec.containers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !self.template.spec.containers.exists(c, has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.add) && c.securityContext.capabilities.add.exists(a, a != 'NET_BIND_SERVICE'))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids securityContext.capabilities.add other than NET_BIND_SERVICE: containers %s'.format([self.template.spec.containers.map(c, has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.add) && c.securityContext.capabilities.add.exists(a, a != 'NET_BIND_SERVICE'), c.name)])",fieldPath=".template.spec.containers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !self.template.spec.containers.exists(c, !c.?securityContext.?runAsNonRoot.orValue(true) || c.?securityContext.?runAsUser.orValue(1) == 0 || c.?securityContext.?seccompProfile.?type.orValue('none') == 'Unconfined' || c.?securityContext.?appArmorProfile.?type.orValue('none') == 'Unconfined')",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids securityContext with runAsNonRoot: false, runAsUser: 0, seccompProfile or appArmorProfile Unconfined: containers %s'.format([self.template.spec.containers.map(c, !c.?securityContext.?runAsNonRoot.orValue(true) || c.?securityContext.?runAsUser.orValue(1) == 0 || c.?securityContext.?seccompProfile.?type.orValue('none') == 'Unconfined' || c.?securityContext.?appArmorProfile.?type.orValue('none') == 'Unconfined', c.name)])",fieldPath=".template.spec.containers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !self.template.spec.containers.exists(c, [c.?livenessProbe.?httpGet.?host, c.?livenessProbe.?tcpSocket.?host, c.?readinessProbe.?httpGet.?host, c.?readinessProbe.?tcpSocket.?host, c.?startupProbe.?httpGet.?host, c.?startupProbe.?tcpSocket.?host].exists(h, h.hasValue()))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids host in livenessProbe, readinessProbe and startupProbe: containers %s'.format([self.template.spec.containers.map(c, [c.?livenessProbe.?httpGet.?host, c.?livenessProbe.?tcpSocket.?host, c.?readinessProbe.?httpGet.?host, c.?readinessProbe.?tcpSocket.?host, c.?startupProbe.?httpGet.?host, c.?startupProbe.?tcpSocket.?host].exists(h, h.hasValue()), c.name)])",fieldPath=".template.spec.containers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !self.template.spec.containers.exists(c, has(c.ports) && c.ports.exists(p, has(p.hostPort)))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids ports.hostPort: containers %s'.format([self.template.spec.containers.map(c, has(c.ports) && c.ports.exists(p, has(p.hostPort)), c.name)])",fieldPath=".template.spec.containers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.spec.initContainers) || !self.template.spec.initContainers.exists(c, c.?securityContext.?privileged.orValue(false) || c.?securityContext.?allowPrivilegeEscalation.orValue(false))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids securityContext.privileged and allowPrivilegeEscalation: initContainers %s'.format([self.template.spec.initContainers.map(c, c.?securityContext.?privileged.orValue(false) || c.?securityContext.?allowPrivilegeEscalation.orValue(false), c.name)])",fieldPath=".template.spec.initContainers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.spec.initContainers) || !self.template.spec.initContainers.exists(c, has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.add) && c.securityContext.capabilities.add.exists(a, a != 'NET_BIND_SERVICE'))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids securityContext.capabilities.add other than NET_BIND_SERVICE: initContainers %s'.format([self.template.spec.initContainers.map(c, has(c.securityContext) && has(c.securityContext.capabilities) && has(c.securityContext.capabilities.add) && c.securityContext.capabilities.add.exists(a, a != 'NET_BIND_SERVICE'), c.name)])",fieldPath=".template.spec.initContainers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.spec.initContainers) || !self.template.spec.initContainers.exists(c, !c.?securityContext.?runAsNonRoot.orValue(true) || c.?securityContext.?runAsUser.orValue(1) == 0 || c.?securityContext.?seccompProfile.?type.orValue('none') == 'Unconfined' || c.?securityContext.?appArmorProfile.?type.orValue('none') == 'Unconfined')",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids securityContext with runAsNonRoot: false, runAsUser: 0, seccompProfile or appArmorProfile Unconfined: initContainers %s'.format([self.template.spec.initContainers.map(c, !c.?securityContext.?runAsNonRoot.orValue(true) || c.?securityContext.?runAsUser.orValue(1) == 0 || c.?securityContext.?seccompProfile.?type.orValue('none') == 'Unconfined' || c.?securityContext.?appArmorProfile.?type.orValue('none') == 'Unconfined', c.name)])",fieldPath=".template.spec.initContainers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.spec.initContainers) || !self.template.spec.initContainers.exists(c, [c.?livenessProbe.?httpGet.?host, c.?livenessProbe.?tcpSocket.?host, c.?readinessProbe.?httpGet.?host, c.?readinessProbe.?tcpSocket.?host, c.?startupProbe.?httpGet.?host, c.?startupProbe.?tcpSocket.?host].exists(h, h.hasValue()))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids host in livenessProbe, readinessProbe and startupProbe: initContainers %s'.format([self.template.spec.initContainers.map(c, [c.?livenessProbe.?httpGet.?host, c.?livenessProbe.?tcpSocket.?host, c.?readinessProbe.?httpGet.?host, c.?readinessProbe.?tcpSocket.?host, c.?startupProbe.?httpGet.?host, c.?startupProbe.?tcpSocket.?host].exists(h, h.hasValue()), c.name)])",fieldPath=".template.spec.initContainers"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.template.spec.initContainers) || !self.template.spec.initContainers.exists(c, has(c.ports) && c.ports.exists(p, has(p.hostPort)))",message="contradicts securityProfile Restricted",messageExpression="'securityProfile Restricted forbids ports.hostPort: initContainers %s'.format([self.template.spec.initContainers.map(c, has(c.ports) && c.ports.exists(p, has(p.hostPort)), c.name)])",fieldPath=".template.spec.initContainers"
type PodClusterSpec struct {
	// podReplicas is how many pods there are. They are named by their number, from 0 up.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	PodReplicas *int32 `json:"podReplicas,omitempty"`

	// image of all containers in the template that set no image.
	//
	// +optional
	// +kubebuilder:default="nginx:1.29"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image,omitempty"`

	// template of the pods. Default: one container named main.
	//
	// +optional
	// +kubebuilder:default={spec: {containers: {{name: "main"}}}}
	Template *sharedv1.PodTemplate `json:"template,omitempty"`

	// securityProfile selects the security settings that are added to the pods where the spec leaves them open.
	// RuntimeDefault adds the container runtime's seccomp profile; images run unchanged, also as root.
	// Restricted adds everything that the restricted Pod Security Standard requires (not as root, no privilege
	// escalation, no capabilities), so the pods run in a namespace that enforces it; a spec that contradicts the
	// standard is rejected. AsWritten adds nothing.
	//
	// +optional
	// +kubebuilder:default=RuntimeDefault
	SecurityProfile sharedv1.PodSecurityProfile `json:"securityProfile,omitempty"`

	// serviceName is a headless Service in the same namespace under which each pod gets a host name of its own,
	// NAME-0.SERVICE. It is up to the user to create it. It cannot be changed.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	ServiceName *string `json:"serviceName,omitempty"`

	// updateStrategy defines how pods are updated to a changed template.
	//
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// minReadySeconds is how long a new pod must be ready before it counts as available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// progressDeadlineSeconds is how long a pod may take to become ready before it is replaced.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// revisionHistoryLimit is how many old templates are kept for rollback.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// suspend stops the controller from changing anything until you unset it.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// UpdateType defines what triggers the update of a pod.
//
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
type UpdateType string

const (
	// UpdateRolling lets the controller update pods, from the highest number down.
	UpdateRolling UpdateType = "RollingUpdate"

	// UpdateOnDelete updates a pod only when it is deleted.
	UpdateOnDelete UpdateType = "OnDelete"
)

// InPlacePolicy defines whether pods are changed or replaced.
//
// +kubebuilder:validation:Enum=IfPossible;Never
type InPlacePolicy string

const (
	// InPlaceIfPossible changes images of running pods, and replaces pods for everything else.
	InPlaceIfPossible InPlacePolicy = "IfPossible"

	// InPlaceNever always replaces pods.
	InPlaceNever InPlacePolicy = "Never"
)

// UpdateStrategy defines how pods are updated to a changed template.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'OnDelete' || !has(self.partition) || self.partition == 0",message="partition cannot be set if type is OnDelete"
type UpdateStrategy struct {
	// type RollingUpdate updates pods from the highest number down; OnDelete waits until you delete them.
	//
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type UpdateType `json:"type,omitempty"`

	// partition is the number below which pods are not updated. Default: 0, all pods are updated.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	Partition *int32 `json:"partition,omitempty"`

	// maxUnavailable is how many pods may be unavailable during an update, as a number or a percentage such as 25%.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 1 && int(self) <= 2147483647 : string(self).matches('^(100|[1-9][0-9]?)%$')",message="must be a number from 1 to 2147483647, or a percentage from 1% to 100%"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// inPlace set to IfPossible changes images in running pods, which keep their node and address, and replaces pods only
	// for other changes. Never replaces pods for every change.
	//
	// +optional
	// +kubebuilder:default=IfPossible
	InPlace InPlacePolicy `json:"inPlace,omitempty"`
}

// PodClusterStatus is the observed state of a set of pods.
type PodClusterStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is how many pods there are.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is how many of them are ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them have been ready for minReadySeconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// currentReplicas is how many of them are of the current revision.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CurrentReplicas int32 `json:"currentReplicas,omitempty"`

	// updatedReplicas is how many of them are of the update revision.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// currentRevision is the revision of pods below the partition and of pods that wait for their update.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the revision of the current template. It equals currentRevision when no update is in
	// progress.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount is the number of hash collisions when a revision was named.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// selector selects the pods, in the format of the scale subresource and kubectl --selector.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
