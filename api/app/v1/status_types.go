// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of condition that an AppService takes over from its Deployment, beside those of every kind.
const (
	// ConditionAvailable is True while enough pods are available.
	ConditionAvailable = "Available"

	// ConditionProgressing is True while a rollout makes progress and after it has succeeded.
	ConditionProgressing = "Progressing"

	// ConditionReplicaFailure is True while pods cannot be created or deleted, and is absent otherwise.
	ConditionReplicaFailure = "ReplicaFailure"
)

// AppServiceStatus is what an application is. It has every field that the status of a Deployment has.
type AppServiceStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is how many pods there are that are not terminating.
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

	// availableReplicas is how many of them have been ready for minReadySeconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// unavailableReplicas is how many pods are missing until all are available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// terminatingReplicas is how many pods are terminating. It is absent where the cluster does not count them.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty"`

	// collisionCount is how often the Deployment had to choose another name for a ReplicaSet.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions are Ready, Reconciling and Stalled, and those of the Deployment: Available, Progressing and
	// ReplicaFailure.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// url is where the application can be reached: that of the Ingress, else of the load balancer, else of the
	// Service within the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// selector picks the pods, in the form that the scale subresource and kubectl --selector take.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`
}
