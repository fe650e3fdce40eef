// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// Robot is a Deployment of workers with a name of its own.
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

	// spec is what the workers should be.
	//
	// +required
	Spec RobotSpec `json:"spec"`

	// status is what the workers are. It is written by the controller.
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

// RobotSpec is what the workers should be.
type RobotSpec struct {
	// deploymentName is the name of the Deployment. If it is changed, a Deployment of the new name is created, and
	// the old one is removed when the new one is available. Default: the name of the Robot.
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

	// image of all containers in the template that have none of their own.
	//
	// +optional
	// +kubebuilder:default="nginx:1.29"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image,omitempty"`

	// template says what the workers' pods look like. Default: one container called robot.
	//
	// +optional
	// +kubebuilder:default={spec: {containers: {{name: "robot"}}}}
	Template *sharedv1.PodTemplate `json:"template,omitempty"`

	// strategy says how old pods are replaced by new ones.
	//
	// +optional
	Strategy *sharedv1.DeploymentStrategy `json:"strategy,omitempty"`

	// suspend makes the controller leave everything as it is until it is taken back.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// RobotStatus is what the workers are.
type RobotStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is how many workers there are. During a change of name, those of the old Deployment count as well.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	// updatedReplicas is how many of them are as the current spec says.
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

	// deploymentName is the Deployment that the Robot manages now. During a change of name that is still the old
	// one.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DeploymentName string `json:"deploymentName,omitempty"`

	// selector picks the workers' pods, in the form that the scale subresource and kubectl --selector take.
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
