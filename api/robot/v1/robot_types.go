// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// Robot is a Deployment of workers with a configurable name.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=robots,singular=robot,shortName=rob,categories=opdock
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:selectablefield:JSONPath=`.spec.deploymentName`
// +kubebuilder:selectablefield:JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.status.deploymentName`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name is also a label of the pods: it must have at most 63 characters"
type Robot struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the workers.
	//
	// +required
	Spec RobotSpec `json:"spec"`

	// status is the observed state of the workers, written by the controller.
	//
	// +optional
	// +kubebuilder:default={observedGeneration: 0}
	Status RobotStatus `json:"status,omitempty"`
}

// RobotList is a list of Robots.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type RobotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Robot `json:"items"`
}

// RobotSpec is the desired state of the workers.
//
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
type RobotSpec struct {
	// deploymentName is the name of the Deployment. If you change it, a Deployment with the new name is created, and
	// the old one is deleted when the new one is available. Default: the name of the Robot.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	DeploymentName string `json:"deploymentName,omitempty"`

	// replicas is how many workers there are.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// image of all containers in the template that set no image.
	//
	// +optional
	// +kubebuilder:default="nginx:1.29"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image,omitempty"`

	// template of the workers' pods. Default: one container named robot.
	//
	// +optional
	// +kubebuilder:default={spec: {containers: {{name: "robot"}}}}
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

	// strategy defines how old pods are replaced by new ones.
	//
	// +optional
	Strategy *sharedv1.DeploymentStrategy `json:"strategy,omitempty"`

	// suspend stops the controller from changing anything until you unset it.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// RobotStatus is the observed state of the workers.
type RobotStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of workers. While the name changes, workers of the old Deployment are included.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	// updatedReplicas is how many of them match the current spec.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// readyReplicas is how many of them are ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is how many of them are available.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas int32 `json:"availableReplicas"`

	// deploymentName is the Deployment that the Robot currently manages. While the name changes, this is still the
	// old one.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DeploymentName string `json:"deploymentName,omitempty"`

	// selector selects the workers' pods, in the format of the scale subresource and kubectl --selector.
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
