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
	// name of the port. Optional if there is only one port.
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

	// targetPort is the port that the application listens on. A name becomes the name of the container port, whose
	// number is then port. Default: the same as port.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^([0-9]+-?)*[a-z](-?[a-z0-9])*$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 1 && int(self) <= 65535",message="must be a number from 1 to 65535 or the name of a port"
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`

	// nodePort exposes this port on every node, within the default range of clusters. Default: none, or a port that
	// the cluster allocates for Services of type NodePort and LoadBalancer.
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

// ServiceType is how a Service is exposed.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer;Headless
type ServiceType string

// The ways in which a Service is exposed.
const (
	// ServiceTypeClusterIP has an address inside the cluster.
	ServiceTypeClusterIP ServiceType = "ClusterIP"

	// ServiceTypeNodePort also has a port on every node.
	ServiceTypeNodePort ServiceType = "NodePort"

	// ServiceTypeLoadBalancer also has a load balancer outside of the cluster.
	ServiceTypeLoadBalancer ServiceType = "LoadBalancer"

	// ServiceTypeHeadless has no address; its name resolves to the addresses of the pods.
	ServiceTypeHeadless ServiceType = "Headless"
)

// ServiceSettings holds settings of a Service other than its ports.
//
// +kubebuilder:validation:XValidation:rule="!has(self.loadBalancerClass) || has(self.type) && self.type == 'LoadBalancer'",message="loadBalancerClass can only be set if type is LoadBalancer",fieldPath=".loadBalancerClass"
type ServiceSettings struct {
	// type defines how the Service is exposed: at an address inside the cluster, at a port on every node, through a
	// load balancer, or headless at the pods' own addresses. Default: NodePort if a port has a nodePort,
	// otherwise ClusterIP.
	//
	// +optional
	Type ServiceType `json:"type,omitempty"`

	// annotations of the Service, often used to configure load balancers.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// sessionAffinity set to ClientIP sends a client to the same pod each time. Default: None.
	//
	// +optional
	// +kubebuilder:validation:Enum=None;ClientIP
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// externalTrafficPolicy set to Local sends traffic that arrives at a node only to pods on that node, which preserves
	// the client's address. It applies to types NodePort and LoadBalancer. Default: Cluster.
	//
	// +optional
	// +kubebuilder:validation:Enum=Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// loadBalancerClass selects one of several load balancer implementations.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`
}

// Ingress exposes an application outside of the cluster.
type Ingress struct {
	// className is the IngressClass. Default: the cluster's default class.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClassName *string `json:"className,omitempty"`

	// annotations of the Ingress, often used to configure ingress controllers.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	// rules define which host names and paths route to the application.
	//
	// +required
	// +listType=map
	// +listMapKey=host
	// +listMapKey=path
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Rules []IngressRule `json:"rules"`

	// tls lists certificates and the host names they are for.
	//
	// +optional
	// +listType=map
	// +listMapKey=secretName
	// +kubebuilder:validation:MaxItems=16
	TLS []IngressTLS `json:"tls,omitempty"`
}

// IngressRule is a host name and path that route to the application.
type IngressRule struct {
	// host name; a leading *. matches one label. Default: any.
	//
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^((\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Host string `json:"host"`

	// path that requests must match.
	//
	// +optional
	// +kubebuilder:default="/"
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	Path string `json:"path,omitempty"`

	// pathType defines how the path is matched.
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

	// hosts that the certificate is for. Default: the ingress controller's choice.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Hosts []string `json:"hosts,omitempty"`
}

// NetworkPolicy limits which clients may connect to the pods of an application.
type NetworkPolicy struct {
	// from lists the clients that may connect to the application's ports. If it is empty, all connections are denied.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	From []NetworkPeer `json:"from,omitempty"`
}

// NetworkPeer selects clients that may connect.
//
// +kubebuilder:validation:XValidation:rule="has(self.ipBlock) != (has(self.podSelector) || has(self.namespaceSelector))",message="either ipBlock, or podSelector, namespaceSelector or both must be set"
type NetworkPeer struct {
	// podSelector selects pods, in the same namespace unless there is a namespaceSelector; {} selects all.
	//
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// namespaceSelector selects namespaces; {} selects all.
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
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a CIDR block such as 192.0.2.0/24"
	CIDR string `json:"cidr"`

	// except are parts of the range that may not connect.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=49
	Except []string `json:"except,omitempty"`
}
