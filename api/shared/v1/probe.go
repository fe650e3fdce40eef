// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Probe is a check that runs repeatedly while a container runs.
//
// +kubebuilder:validation:XValidation:rule="[has(self.exec), has(self.httpGet), has(self.tcpSocket), has(self.grpc)].exists_one(x, x)",message="exactly one of exec, httpGet, tcpSocket and grpc must be set"
type Probe struct {
	// exec succeeds if a command in the container exits with 0.
	//
	// +optional
	Exec *ExecAction `json:"exec,omitempty"`

	// httpGet succeeds if the response to a GET request has a status from 200 to 399.
	//
	// +optional
	HTTPGet *HTTPGetAction `json:"httpGet,omitempty"`

	// tcpSocket succeeds if the port accepts a connection.
	//
	// +optional
	TCPSocket *TCPSocketAction `json:"tcpSocket,omitempty"`

	// grpc succeeds if the gRPC health service reports SERVING.
	//
	// +optional
	GRPC *GRPCAction `json:"grpc,omitempty"`

	// initialDelaySeconds is how long after the container's start the first check is made. Default: 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	InitialDelaySeconds int32 `json:"initialDelaySeconds,omitempty"`

	// timeoutSeconds is how long a check may take. Default: 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// periodSeconds is the time from one check to the next. Default: 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// successThreshold is how many checks in a row must succeed after one that failed. It must be 1 for
	// liveness and startup probes. Default: 1.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	SuccessThreshold int32 `json:"successThreshold,omitempty"`

	// failureThreshold is how many checks in a row must fail for the probe to fail. Default: 3.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// terminationGracePeriodSeconds is how long the container may take to stop after this probe failed.
	// Default: the value of the pod.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`
}

// ExecAction runs a command in the container.
type ExecAction struct {
	// command and its arguments. There is no shell unless it names one.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Command []string `json:"command"`
}

// HTTPGetAction makes a GET request.
type HTTPGetAction struct {
	// path of the request. Default: /.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path,omitempty"`

	// port of the container, as a number or by its name.
	//
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^([0-9]+-?)*[a-z](-?[a-z0-9])*$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 1 && int(self) <= 65535",message="must be a number from 1 to 65535 or the name of a port"
	Port intstr.IntOrString `json:"port"`

	// host to connect to. Default: the pod's address.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`

	// scheme of the request. Default: HTTP.
	//
	// +optional
	// +kubebuilder:validation:Enum=HTTP;HTTPS
	Scheme corev1.URIScheme `json:"scheme,omitempty"`

	// httpHeaders of the request. The same name can appear more than once.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	HTTPHeaders []HTTPHeader `json:"httpHeaders,omitempty"`
}

// HTTPHeader is a header of a request.
type HTTPHeader struct {
	// name of the header.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name"`

	// value of the header.
	//
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Value string `json:"value"`
}

// TCPSocketAction opens a connection.
type TCPSocketAction struct {
	// port of the container, as a number or by its name.
	//
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^([0-9]+-?)*[a-z](-?[a-z0-9])*$`
	// +kubebuilder:validation:XValidation:rule="type(self) != int || int(self) >= 1 && int(self) <= 65535",message="must be a number from 1 to 65535 or the name of a port"
	Port intstr.IntOrString `json:"port"`

	// host to connect to. Default: the pod's address.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`
}

// GRPCAction calls the gRPC health service.
type GRPCAction struct {
	// port of the gRPC service.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// service is the name of the service to check. Default: none, which means the whole server.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Service *string `json:"service,omitempty"`
}

// Lifecycle holds actions after a container starts and before it stops.
type Lifecycle struct {
	// postStart runs right after the container starts. If it fails, the container is restarted.
	//
	// +optional
	PostStart *LifecycleHandler `json:"postStart,omitempty"`

	// preStop runs before the container is stopped, within the grace period.
	//
	// +optional
	PreStop *LifecycleHandler `json:"preStop,omitempty"`
}

// LifecycleHandler is an action at the start or the end of a container.
//
// +kubebuilder:validation:XValidation:rule="has(self.exec) != has(self.sleep)",message="exactly one of exec and sleep must be set"
type LifecycleHandler struct {
	// exec runs a command in the container.
	//
	// +optional
	Exec *ExecAction `json:"exec,omitempty"`

	// sleep waits.
	//
	// +optional
	Sleep *SleepAction `json:"sleep,omitempty"`
}

// SleepAction waits.
type SleepAction struct {
	// seconds to wait.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Seconds int64 `json:"seconds"`
}
