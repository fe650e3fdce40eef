// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// KAPP is an application composed of objects of the other kinds of the fleet, which are created in the order of their
// dependencies.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=kapps,singular=kapp,shortName=ka,categories=opdock
// +kubebuilder:subresource:status
// +kubebuilder:selectablefield:JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Components",type=integer,JSONPath=`.status.componentCount`
// +kubebuilder:printcolumn:name="Ready Components",type=integer,JSONPath=`.status.readyComponentCount`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",message="the name is also a label of the components and a prefix of their names: it must have at most 63 characters and no dots"
// +kubebuilder:validation:XValidation:rule="self.spec.components.all(c, (has(c.resource.metadata) && has(c.resource.metadata.name) ? size(c.resource.metadata.name) : size(self.metadata.name) + 1 + size(c.name)) <= (c.resource.kind == 'PodCluster' ? 58 : 63))",message="the name of a component's object is too long: resource.metadata.name, or KAPP-COMPONENT if it is not set, can have 63 characters, or 58 for a PodCluster"
type KAPP struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the application.
	//
	// +required
	Spec KAPPSpec `json:"spec"`

	// status is the observed state of the application, written by the controller.
	//
	// +optional
	// +kubebuilder:default={observedGeneration: 0}
	Status KAPPStatus `json:"status,omitempty"`
}

// KAPPList is a list of KAPPs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type KAPPList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []KAPP `json:"items"`
}

// The rules of components hold when components change. The API server skips rules for unchanged parts of an object, but not
// if these contain embedded objects. Without a comparison with oldSelf, an object that is older than a rule could neither get
// a status nor be deleted.

// KAPPSpec is the desired state of an application.
type KAPPSpec struct {
	// components of the application, at most 30. Components that you remove are pruned. Split a larger application into
	// several KAPPs.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || self.all(c, !has(c.dependsOn) || c.dependsOn.all(d, self.exists(o, o.name == d)))",message="dependsOn names a component that does not exist",messageExpression="'dependsOn names components that do not exist: %s'.format([self.map(c, has(c.dependsOn) && c.dependsOn.exists(d, !self.exists(o, o.name == d)), c.dependsOn.map(d, !self.exists(o, o.name == d), '%s depends on %s'.format([c.name, d]))[0])])",optionalOldSelf=true
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || self.all(c, !has(c.dependsOn) || c.dependsOn.all(d, d == c.name || !self.exists(o, o.name == d && has(o.dependsOn) && c.name in o.dependsOn)))",message="two components depend on each other",messageExpression="self.map(c, has(c.dependsOn) && c.dependsOn.exists(d, self.exists(o, o.name == d && has(o.dependsOn) && c.name in o.dependsOn)), c.dependsOn.map(d, self.exists(o, o.name == d && has(o.dependsOn) && c.name in o.dependsOn), '%s and %s depend on each other'.format([c.name, d]))[0])[0]",optionalOldSelf=true
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || self.exists(c, !has(c.dependsOn) || size(c.dependsOn) == 0)",message="every component depends on another, so none can be created first",messageExpression="'every component depends on another, so none can be created first: %s'.format([self.map(c, '%s → %s'.format([c.name, c.dependsOn.join(', ')]))])",optionalOldSelf=true
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || self.all(a, !has(a.dependsOn) || self.all(b, !(b.name in a.dependsOn) || !has(b.dependsOn) || !self.exists(c, c.name in b.dependsOn && has(c.dependsOn) && a.name in c.dependsOn)))",message="three components form a dependency cycle",messageExpression="self.map(a, has(a.dependsOn) && self.exists(b, b.name in a.dependsOn && has(b.dependsOn) && self.exists(c, c.name in b.dependsOn && has(c.dependsOn) && a.name in c.dependsOn)), self.map(b, b.name in a.dependsOn && has(b.dependsOn) && self.exists(c, c.name in b.dependsOn && has(c.dependsOn) && a.name in c.dependsOn), self.map(c, c.name in b.dependsOn && has(c.dependsOn) && a.name in c.dependsOn, 'components form a dependency cycle: %s → %s → %s → %s'.format([a.name, b.name, c.name, a.name]))[0])[0])[0]",optionalOldSelf=true
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() && self == oldSelf.value() || self.exists(c, self.all(o, !has(o.dependsOn) || !(c.name in o.dependsOn)))",message="every component is a dependency of another, so some of them form a cycle",messageExpression="'every component is a dependency of another, so some of them form a cycle: %s'.format([self.map(c, has(c.dependsOn), '%s → %s'.format([c.name, c.dependsOn.join(', ')]))])",optionalOldSelf=true
	Components []Component `json:"components"`

	// suspend stops the controller from changing anything until you unset it.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// Component is a part of an application: an object of another kind of the fleet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dependsOn) || !(self.name in self.dependsOn)",message="a component cannot depend on itself",messageExpression="self.name + ' cannot depend on itself'",fieldPath=".dependsOn"
// +kubebuilder:validation:XValidation:rule="self.resource.kind == oldSelf.resource.kind",message="the kind of a component cannot change; add a component with another name and remove this one",fieldPath=".resource"
type Component struct {
	// name of the component, which is unique in its KAPP.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// dependsOn lists the components that must be ready before this one is created or changed. They are deleted after
	// this one.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=29
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	DependsOn []string `json:"dependsOn,omitempty"`

	// resource is the object: an AppService, PodCluster, Robot or Collector, as in a manifest. It is created in the
	// namespace of the KAPP. Without metadata.name, its name is KAPP-COMPONENT, from the names of both. Only name,
	// labels and annotations of its metadata are used.
	//
	// +required
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:XValidation:rule="[self.apiVersion, self.kind] in [['app.example.com/v1', 'AppService'], ['app.example.com/v1alpha1', 'AppService'], ['kubegroup.generals.space/v1', 'PodCluster'], ['robot.llleon.io/v1', 'Robot'], ['collector.ip/v1', 'Collector']]",message="must be an AppService (app.example.com/v1 or v1alpha1), PodCluster (kubegroup.generals.space/v1), Robot (robot.llleon.io/v1) or Collector (collector.ip/v1)"
	Resource runtime.RawExtension `json:"resource"`
}

// ComponentState is the state of a component.
//
// +kubebuilder:validation:Enum=Waiting;Progressing;Ready;Stalled;Deleting
type ComponentState string

// The states of a component.
const (
	// ComponentWaiting means that it is not created yet, because a component it depends on is not ready.
	ComponentWaiting ComponentState = "Waiting"

	// ComponentProgressing means that it exists and is not ready yet.
	ComponentProgressing ComponentState = "Progressing"

	// ComponentReady means that it matches its spec.
	ComponentReady ComponentState = "Ready"

	// ComponentStalled means that it cannot make progress until something changes. A suspended component is stalled,
	// too.
	ComponentStalled ComponentState = "Stalled"

	// ComponentDeleting means that it was removed from the spec and is being deleted.
	ComponentDeleting ComponentState = "Deleting"
)

// KAPPStatus is the observed state of an application.
type KAPPStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// components has a row for each component, including those that are being deleted.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=60
	Components []ComponentStatus `json:"components,omitempty"`

	// componentCount is the desired number of components.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	ComponentCount int32 `json:"componentCount"`

	// readyComponentCount is how many of them are ready.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	ReadyComponentCount int32 `json:"readyComponentCount"`

	// conditions are Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ComponentStatus is the observed state of a component.
type ComponentStatus struct {
	// name of the component.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// apiVersion of its object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of its object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// resourceName is the name of its object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ResourceName string `json:"resourceName,omitempty"`

	// state is how far it is.
	//
	// +required
	State ComponentState `json:"state"`

	// waitingFor lists the components that must be ready first.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=29
	WaitingFor []string `json:"waitingFor,omitempty"`

	// message describes the state.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}
