// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ServicePort is a port of the application's Service.
type ServicePort struct {
	// name of the port. It can be left out if there is only one.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// port that the Service listens on.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// protocol of the port.
	//
	// +optional
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// targetPort is the port that the application listens on. A name gives the container's port that name; its
	// number then is that of port. Default: the same as port.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^([0-9]+-?)*[a-z](-?[a-z0-9])*$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 1 && int(self) <= 65535",message="must be a number from 1 to 65535 or the name of a port"
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`

	// nodePort is a port of every node that leads to this one, within the range that clusters have by default.
	// Default: none, or for Services of type NodePort and LoadBalancer one that the cluster chooses.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 30000 && self <= 32767",message="must be from 30000 to 32767"
	NodePort *int32 `json:"nodePort,omitempty"`

	// appProtocol is a hint for load balancers and meshes, such as http, https or kubernetes.io/h2c.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	AppProtocol *string `json:"appProtocol,omitempty"`
}

// ServiceType is how a Service can be reached.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer;Headless
type ServiceType string

// The ways in which a Service can be reached.
const (
	// ServiceTypeClusterIP has an address within the cluster.
	ServiceTypeClusterIP ServiceType = "ClusterIP"

	// ServiceTypeNodePort has a port of every node as well.
	ServiceTypeNodePort ServiceType = "NodePort"

	// ServiceTypeLoadBalancer has a load balancer outside of the cluster as well.
	ServiceTypeLoadBalancer ServiceType = "LoadBalancer"

	// ServiceTypeHeadless has no address; its name stands for those of the pods.
	ServiceTypeHeadless ServiceType = "Headless"
)

// ServiceSettings holds settings of a Service beside its ports.
//
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerClass) || has(self.type) && self.type == 'LoadBalancer'",message="loadBalancerClass can only be set if type is LoadBalancer",fieldPath=".loadBalancerClass"
type ServiceSettings struct {
	// type says how the Service can be reached: at an address within the cluster, at a port of every node, by a
	// load balancer, or headless at the pods' own addresses. Default: NodePort if a port has a nodePort,
	// otherwise ClusterIP.
	//
	// +optional
	Type ServiceType `json:"type,omitempty"`

	// annotations of the Service, which load balancers are often configured by.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// sessionAffinity ClientIP sends a client to the same pod each time. Default: None.
	//
	// +optional
	// +kubebuilder:validation:Enum=None;ClientIP
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// externalTrafficPolicy Local sends what arrives at a node only to pods there, which keeps the client's
	// address. It is for types NodePort and LoadBalancer. Default: Cluster.
	//
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// loadBalancerClass chooses among several implementations of load balancers.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`
}

// Ingress makes an application reachable from outside of the cluster.
type Ingress struct {
	// className is the IngressClass. Default: the cluster's default class.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClassName *string `json:"className,omitempty"`

	// annotations of the Ingress, which ingress controllers are often configured by.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// rules say which host names and paths lead to the application.
	//
	// +required
	// +listType=map
	// +listMapKey=host
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Rules []IngressRule `json:"rules"`

	// tls says for which host names there are certificates.
	//
	// +optional
	// +listType=map
	// +listMapKey=secretName
	// +kubebuilder:validation:MaxItems=16
	TLS []IngressTLS `json:"tls,omitempty"`
}

// IngressRule is a host name and path that lead to the application.
type IngressRule struct {
	// host name; *. in front stands for one label. Default: any.
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^((\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Host string `json:"host"`

	// path that requests must have.
	//
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`

	// pathType says how the path is compared.
	//
	// +optional
	// +kubebuilder:default=Prefix
	// +kubebuilder:validation:Enum=Exact;Prefix;ImplementationSpecific
	PathType networkingv1.PathType `json:"pathType,omitempty"`

	// port of the application's Service. Default: the first in ports.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}

// IngressTLS is a certificate for host names.
type IngressTLS struct {
	// secretName is the Secret with the certificate and its key.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// hosts that the certificate is for. Default: as the ingress controller decides.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Hosts []string `json:"hosts,omitempty"`
}

// NetworkPolicy limits who may connect to the pods of an application.
type NetworkPolicy struct {
	// from lists who may connect to the application's ports. If it is empty, nobody may.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	From []NetworkPeer `json:"from,omitempty"`
}

// NetworkPeer is who may connect.
//
// +kubebuilder:validation:XValidation:rule="has(self.ipBlock) != (has(self.podSelector) || has(self.namespaceSelector))",message="either ipBlock, or podSelector, namespaceSelector or both must be set"
type NetworkPeer struct {
	// podSelector picks pods, in the same namespace unless there is a namespaceSelector; {} picks all.
	//
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// namespaceSelector picks namespaces; {} picks all.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// ipBlock is a range of addresses, usually outside of the cluster.
	//
	// +optional
	IPBlock *IPBlock `json:"ipBlock,omitempty"`
}

// IPBlock is a range of addresses.
type IPBlock struct {
	// cidr is the range, such as 192.0.2.0/24 or 2001:db8::/64.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=49
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of addresses such as 192.0.2.0/24"
	CIDR string `json:"cidr"`

	// except are parts of the range that may not connect.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=49
	Except []string `json:"except,omitempty"`
}
