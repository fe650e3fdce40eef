// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Affinity draws pods to nodes, and to or away from other pods.
type Affinity struct {
	// nodeAffinity draws the pods to nodes.
	//
	// +optional
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`

	// podAffinity draws the pods to where certain other pods run.
	//
	// +optional
	PodAffinity *PodAffinity `json:"podAffinity,omitempty"`

	// podAntiAffinity keeps the pods away from where certain other pods run.
	//
	// +optional
	PodAntiAffinity *PodAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity draws pods to nodes.
type NodeAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution is what a node must fulfil.
	//
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// preferredDuringSchedulingIgnoredDuringExecution is what makes a node a better choice.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredNode `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeSelector picks nodes that at least one of its terms matches.
type NodeSelector struct {
	// nodeSelectorTerms of which one is enough.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms"`
}

// NodeSelectorTerm matches a node that fulfils all of it.
type NodeSelectorTerm struct {
	// matchExpressions are requirements on the node's labels.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MatchExpressions []NodeRequirement `json:"matchExpressions,omitempty"`
}

// NodeRequirement compares a label of a node.
type NodeRequirement struct {
	// key of the label.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// operator of the comparison.
	//
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
	Operator corev1.NodeSelectorOperator `json:"operator"`

	// values to compare with: none for Exists and DoesNotExist, one number for Gt and Lt.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Values []string `json:"values,omitempty"`
}

// PreferredNode makes nodes a better choice.
type PreferredNode struct {
	// weight of this preference.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// preference is what the node should fulfil.
	//
	// +required
	Preference NodeSelectorTerm `json:"preference"`
}

// PodAffinity relates pods to where certain other pods run.
type PodAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution is what must hold, all of it.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// preferredDuringSchedulingIgnoredDuringExecution is what makes a node a better choice.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// WeightedPodAffinityTerm makes nodes a better choice.
type WeightedPodAffinityTerm struct {
	// weight of this preference.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// podAffinityTerm is what should hold.
	//
	// +required
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm"`
}

// PodAffinityTerm picks the nodes that share a domain with certain pods.
type PodAffinityTerm struct {
	// topologyKey is the node label whose value makes a domain, such as kubernetes.io/hostname.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`

	// labelSelector picks the pods. Without one, there are none.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// namespaces of the pods. Default, if there is no namespaceSelector either: the same namespace.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelector picks namespaces of the pods, in addition to those listed; {} picks all.
	//
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// Toleration lets pods run on nodes with matching taints.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.operator) && self.operator == 'Exists' && has(self.value) && size(self.value) > 0)",message="value must be empty if operator is Exists"
type Toleration struct {
	// key of the taint. Empty, with operator Exists: any.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key,omitempty"`

	// operator that compares the taint's value. Default: Equal.
	//
	// +optional
	// +kubebuilder:validation:Enum=Exists;Equal
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// value of the taint.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value,omitempty"`

	// effect of the taint. Default: any.
	//
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect,omitempty"`

	// tolerationSeconds is how long a pod may stay after a taint with effect NoExecute has appeared. Default:
	// for ever.
	//
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TopologySpreadConstraint says how pods spread over domains.
type TopologySpreadConstraint struct {
	// maxSkew is how many more pods a domain may have than the one with the fewest.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxSkew int32 `json:"maxSkew"`

	// topologyKey is the node label whose value makes a domain, such as topology.kubernetes.io/zone.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`

	// whenUnsatisfiable says whether pods wait if there is no fitting node, or run anyway.
	//
	// +required
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	WhenUnsatisfiable corev1.UnsatisfiableConstraintAction `json:"whenUnsatisfiable"`

	// labelSelector picks the pods that are counted.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// minDomains is how many domains there should be at least; it needs DoNotSchedule.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinDomains *int32 `json:"minDomains,omitempty"`

	// matchLabelKeys are labels for which a counted pod must have the same value as the one to be placed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`

	// nodeAffinityPolicy says whether nodes that the pods cannot run on count. Default: Honor, they do not.
	//
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeAffinityPolicy *corev1.NodeInclusionPolicy `json:"nodeAffinityPolicy,omitempty"`

	// nodeTaintsPolicy says whether taints keep nodes from being counted. Default: Ignore, they do not.
	//
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeTaintsPolicy *corev1.NodeInclusionPolicy `json:"nodeTaintsPolicy,omitempty"`
}
