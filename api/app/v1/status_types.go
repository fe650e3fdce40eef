// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The types of condition that an AppService copies from its Deployment, in addition to those of every kind.
const (
	// ConditionAvailable is True while enough pods are available.
	ConditionAvailable = "Available"

	// ConditionProgressing is True while a rollout makes progress and after it has succeeded.
	ConditionProgressing = "Progressing"

	// ConditionReplicaFailure is True while pods cannot be created or deleted, and is absent otherwise.
	ConditionReplicaFailure = "ReplicaFailure"
)

// AppServiceStatus is the observed state of an application. It has every field of a Deployment's status.
type AppServiceStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods that are not terminating.
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

	// availableReplicas is how many of them have been ready for minReadySeconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// unavailableReplicas is how many more pods must become available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// terminatingReplicas is how many pods are terminating. It is absent if the cluster does not count them.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty"`

	// collisionCount is the number of hash collisions when the Deployment named a ReplicaSet.
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

	// url is the address of the application: that of the Ingress, otherwise of the load balancer, otherwise of the
	// Service inside the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// selector selects the pods, in the format of the scale subresource and kubectl --selector.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Selector string `json:"selector,omitempty"`
}
