// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxAddresses is how many addresses the status of a Collector holds at most.
const MaxAddresses = 500

// Collector holds the current addresses of the pods that its selector matches, for allow-lists and firewalls, and
// counts its reconciles and the events that caused them.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=collectors,singular=collector,shortName=coll,categories=opdock
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Addresses",type=integer,JSONPath=`.status.addressCount`
// +kubebuilder:printcolumn:name="Ready Addresses",type=integer,JSONPath=`.status.readyAddressCount`
// +kubebuilder:printcolumn:name="Reconciles",type=integer,JSONPath=`.status.reconciles`
// +kubebuilder:printcolumn:name="ConfigMap",type=string,JSONPath=`.spec.output.configMapName`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name is also a label of the ConfigMap: it must have at most 63 characters"
type Collector struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the pods whose addresses are collected.
	//
	// +required
	Spec CollectorSpec `json:"spec"`

	// status holds the addresses, written by the controller.
	//
	// +optional
	// +kubebuilder:default={observedGeneration: 0}
	Status CollectorStatus `json:"status,omitempty"`
}

// CollectorList is a list of Collectors.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type CollectorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Collector `json:"items"`
}

// Readiness defines which pods are included.
//
// +kubebuilder:validation:Enum=Any;Ready
type Readiness string

const (
	// ReadinessAny includes pods whether they are ready or not.
	ReadinessAny Readiness = "Any"

	// ReadinessReady includes only ready pods.
	ReadinessReady Readiness = "Ready"
)

// CollectorSpec selects the pods whose addresses are collected.
type CollectorSpec struct {
	// selector selects pods in the same namespace by their labels; {} selects all.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && size(e.values) > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || size(e.values) == 0))",message="operator must be In or NotIn with values, or Exists or DoesNotExist without values"
	Selector metav1.LabelSelector `json:"selector"`

	// readiness set to Ready includes only ready pods.
	//
	// +optional
	// +kubebuilder:default=Any
	Readiness Readiness `json:"readiness,omitempty"`

	// ipFamilies are the address families to collect. Default: all that the pods have.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`

	// output defines where the complete list is written, in addition to the limited list in the status.
	//
	// +optional
	Output *CollectorOutput `json:"output,omitempty"`

	// debounceMilliseconds is how long to wait for further changes before the list is written. If changes keep coming,
	// it is written after five times as long.
	//
	// +optional
	// +kubebuilder:default=500
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=600000
	DebounceMilliseconds *int32 `json:"debounceMilliseconds,omitempty"`

	// suspend stops the controller from changing anything until you unset it.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// CollectorOutput defines where the complete list is written.
type CollectorOutput struct {
	// configMapName is a ConfigMap in the same namespace that belongs to the Collector. Its key ips.txt holds each
	// address once, one per line, and addresses.json the same details as the status. A ConfigMap holds 1 MiB: a
	// longer list omits the details. If that is not enough, the ConfigMap is not updated and the Collector is stalled.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ConfigMapName string `json:"configMapName"`
}

// CollectorStatus holds the addresses, and counts reconciles and the events that caused them.
type CollectorStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// addresses of the pods, sorted. If there are more than fit, it holds the first ones. Pods that succeeded or failed
	// are not included. Pods that are being deleted are included until they are gone, as not ready. Pods in the host
	// network have the address of their node.
	//
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +listMapKey=pod
	// +kubebuilder:validation:MaxItems=500
	Addresses []Address `json:"addresses,omitempty"`

	// addressCount is the number of addresses, including those that do not fit here.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	AddressCount int32 `json:"addressCount"`

	// readyAddressCount is how many of them belong to pods that are ready.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	ReadyAddressCount int32 `json:"readyAddressCount"`

	// truncated is true if there are more addresses than fit here.
	//
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// configMapName is the ConfigMap that currently holds the complete list.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMapName string `json:"configMapName,omitempty"`

	// events counts the events that the Collector received, by kind of object and type of event. Events that change no
	// address are counted a few seconds later.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Events []EventCount `json:"events,omitempty"`

	// reconciles is how often the Collector was reconciled.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Reconciles int64 `json:"reconciles"`

	// lastChangeTime is when the list of addresses last changed.
	//
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Address is an address of a pod.
type Address struct {
	// ip is the address.
	//
	// +required
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=45
	IP string `json:"ip"`

	// pod is the name of the pod that has it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pod string `json:"pod"`

	// node that the pod runs on.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// ready is true if the pod is ready.
	//
	// +required
	Ready bool `json:"ready"`

	// owner is the object that manages the pod.
	//
	// +optional
	Owner *Owner `json:"owner,omitempty"`
}

// Owner is the object that manages a pod.
type Owner struct {
	// kind of the object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// name of the object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// EventType is what happened to an object.
//
// +kubebuilder:validation:Enum=Added;Modified;Deleted
type EventType string

// The types of event.
const (
	// EventAdded means that the object was created.
	EventAdded EventType = "Added"

	// EventModified means that the object changed.
	EventModified EventType = "Modified"

	// EventDeleted means that the object was deleted.
	EventDeleted EventType = "Deleted"
)

// EventCount counts events of one type on one kind of object.
type EventCount struct {
	// kind of the object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// type of the event.
	//
	// +required
	Type EventType `json:"type"`

	// count is the number of events.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Count int64 `json:"count"`
}
