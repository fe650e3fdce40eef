// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// AppService is a web application: a Deployment and a Service of the same name and, on request, an autoscaler, an
// Ingress, a disruption budget and a network policy.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=appservices,singular=appservice,shortName=appsvc,categories=opdock
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:selectablefield:JSONPath=`.spec.image`
// +kubebuilder:selectablefield:JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the Service has the same name: it must have at most 63 characters, consist of lower case letters, digits and '-', start with a letter and not end with '-'"
type AppService struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the application.
	//
	// +required
	Spec AppServiceSpec `json:"spec"`

	// status is the observed state of the application, written by the controller.
	//
	// +optional
	// +kubebuilder:default={observedGeneration: 0}
	Status AppServiceStatus `json:"status,omitempty"`
}

// AppServiceList is a list of AppServices.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type AppServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AppService `json:"items"`
}

// AppServiceSpec is the desired state of an application.
//
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || has(self.ports) && size(self.ports) > 0",message="ingress requires at least one entry in ports",fieldPath=".ingress"
// +kubebuilder:validation:XValidation:rule="!has(self.ingress) || !has(self.ports) || self.ingress.rules.all(r, !has(r.port) || self.ports.exists(p, p.port == r.port))",message="an ingress rule names a port that is not in ports",fieldPath=".ingress"
// +kubebuilder:validation:XValidation:rule="!has(self.service) || !has(self.service.type) || self.service.type in ['NodePort', 'LoadBalancer'] || !has(self.ports) || self.ports.all(p, !has(p.nodePort))",message="a port has a nodePort, so service.type must be NodePort or LoadBalancer, or omitted",fieldPath=".service"
// +kubebuilder:validation:XValidation:rule="(has(self.service) && has(self.service.type) && self.service.type == 'Headless') == (has(oldSelf.service) && has(oldSelf.service.type) && oldSelf.service.type == 'Headless')",message="service.type cannot change from or to Headless; create another AppService",fieldPath=".service"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeMounts) || self.volumeMounts.all(m, has(self.volumes) && self.volumes.exists(v, v.name == m.name))",message="a volumeMount names a volume that is not in volumes",fieldPath=".volumeMounts"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.requests) || !has(self.resources.limits) || !('cpu' in self.resources.requests) || !('cpu' in self.resources.limits) || quantity(string(self.resources.requests['cpu'])).compareTo(quantity(string(self.resources.limits['cpu']))) <= 0",message="the cpu request exceeds the cpu limit",fieldPath=".resources"
// +kubebuilder:validation:XValidation:rule="!has(self.resources) || !has(self.resources.requests) || !has(self.resources.limits) || !('memory' in self.resources.requests) || !('memory' in self.resources.limits) || quantity(string(self.resources.requests['memory'])).compareTo(quantity(string(self.resources.limits['memory']))) <= 0",message="the memory request exceeds the memory limit",fieldPath=".resources"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !self.?hostNetwork.orValue(false)",message="securityProfile Restricted forbids hostNetwork",fieldPath=".hostNetwork"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !(!self.?podSecurityContext.?runAsNonRoot.orValue(true) || self.?podSecurityContext.?runAsUser.orValue(1) == 0 || self.?podSecurityContext.?seccompProfile.?type.orValue('none') == 'Unconfined')",message="securityProfile Restricted forbids runAsNonRoot: false, runAsUser: 0 and seccompProfile Unconfined",fieldPath=".podSecurityContext"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.podSecurityContext) || !has(self.podSecurityContext.sysctls) || self.podSecurityContext.sysctls.all(s, s.name in ['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies', 'net.ipv4.ping_group_range', 'net.ipv4.ip_unprivileged_port_start', 'net.ipv4.ip_local_reserved_ports', 'net.ipv4.tcp_keepalive_time', 'net.ipv4.tcp_fin_timeout', 'net.ipv4.tcp_keepalive_intvl', 'net.ipv4.tcp_keepalive_probes', 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'])",message="securityProfile Restricted forbids sysctls that the baseline Pod Security Standard does not list as safe",fieldPath=".podSecurityContext.sysctls"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.volumes) || !self.volumes.exists(v, has(v.hostPath))",message="securityProfile Restricted forbids hostPath",messageExpression="'securityProfile Restricted forbids hostPath: volumes %s'.format([self.volumes.map(v, has(v.hostPath), v.name)])",fieldPath=".volumes"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !has(self.podMetadata) || !has(self.podMetadata.annotations) || self.podMetadata.annotations.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/') || size(self.podMetadata.annotations[k]) == 0 || self.podMetadata.annotations[k] == 'runtime/default' || self.podMetadata.annotations[k].startsWith('localhost/'))",message="securityProfile Restricted forbids AppArmor annotations other than runtime/default and localhost/",fieldPath=".podMetadata.annotations"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !(self.?securityContext.?privileged.orValue(false) || self.?securityContext.?allowPrivilegeEscalation.orValue(false))",message="securityProfile Restricted forbids securityContext.privileged and allowPrivilegeEscalation",fieldPath=".securityContext"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !(has(self.securityContext) && has(self.securityContext.capabilities) && has(self.securityContext.capabilities.add) && self.securityContext.capabilities.add.exists(a, a != 'NET_BIND_SERVICE'))",message="securityProfile Restricted forbids securityContext.capabilities.add other than NET_BIND_SERVICE",fieldPath=".securityContext.capabilities.add"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || !(!self.?securityContext.?runAsNonRoot.orValue(true) || self.?securityContext.?runAsUser.orValue(1) == 0 || self.?securityContext.?seccompProfile.?type.orValue('none') == 'Unconfined' || self.?securityContext.?appArmorProfile.?type.orValue('none') == 'Unconfined')",message="securityProfile Restricted forbids securityContext with runAsNonRoot: false, runAsUser: 0, seccompProfile or appArmorProfile Unconfined",fieldPath=".securityContext"
// +kubebuilder:validation:XValidation:rule="self.securityProfile != 'Restricted' || ![self.?livenessProbe.?httpGet.?host, self.?livenessProbe.?tcpSocket.?host, self.?readinessProbe.?httpGet.?host, self.?readinessProbe.?tcpSocket.?host, self.?startupProbe.?httpGet.?host, self.?startupProbe.?tcpSocket.?host].exists(h, h.hasValue())",message="securityProfile Restricted forbids host in livenessProbe, readinessProbe and startupProbe"
type AppServiceSpec struct {
	// size is the number of pods. While autoscaling is set, the autoscaler sets the number instead.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Size *int32 `json:"size,omitempty"`

	// image that the application's container runs.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image"`

	// ports of the Service. Without ports, there is no Service. A nodePort makes it a NodePort Service.
	//
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="size(self) <= 1 || self.all(p, has(p.name))",message="every port needs a name if there is more than one"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.name) || self.exists_one(q, has(q.name) && q.name == p.name))",message="port names must be unique"
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.nodePort) || self.exists_one(q, has(q.nodePort) && q.nodePort == p.nodePort && q.protocol == p.protocol))",message="nodePorts must be unique"
	Ports []ServicePort `json:"ports,omitempty"`

	// envs are the environment variables of the application's container.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Envs []sharedv1.EnvVar `json:"envs,omitempty"`

	sharedv1.ContainerSettings `json:",inline"`

	// podMetadata holds labels and annotations of the pods.
	//
	// +optional
	PodMetadata *sharedv1.PodMetadata `json:"podMetadata,omitempty"`

	// podSecurityContext holds security settings of the pods as a whole, and defaults for their containers.
	//
	// +optional
	PodSecurityContext *sharedv1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// securityProfile selects the security settings that are added to the pods where the spec leaves them open.
	// RuntimeDefault adds the container runtime's seccomp profile; images run unchanged, also as root.
	// Restricted adds everything that the restricted Pod Security Standard requires (not as root, no privilege
	// escalation, no capabilities), so the pods run in a namespace that enforces it; a spec that contradicts the
	// standard is rejected. AsWritten adds nothing.
	//
	// +optional
	// +kubebuilder:default=RuntimeDefault
	SecurityProfile sharedv1.PodSecurityProfile `json:"securityProfile,omitempty"`

	sharedv1.PodSettings `json:",inline"`

	// strategy defines how old pods are replaced by new ones.
	//
	// +optional
	Strategy *sharedv1.DeploymentStrategy `json:"strategy,omitempty"`

	// minReadySeconds is how long a new pod must be ready before it counts as available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// progressDeadlineSeconds is how long a rollout may make no progress before it counts as stalled.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// revisionHistoryLimit is how many old ReplicaSets are kept for rollback.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// service holds settings of the Service other than its ports.
	//
	// +optional
	Service *ServiceSettings `json:"service,omitempty"`

	// autoscaling lets a HorizontalPodAutoscaler set the number of pods.
	//
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// ingress exposes the application outside of the cluster, by host name and path.
	//
	// +optional
	Ingress *Ingress `json:"ingress,omitempty"`

	// disruptionBudget limits how many pods may be unavailable while nodes are drained.
	//
	// +optional
	DisruptionBudget *DisruptionBudget `json:"disruptionBudget,omitempty"`

	// networkPolicy limits which clients may connect to the pods.
	//
	// +optional
	NetworkPolicy *NetworkPolicy `json:"networkPolicy,omitempty"`

	// suspend stops the controller from changing anything until you unset it.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}
