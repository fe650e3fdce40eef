// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Affinity attracts pods to nodes, and to or away from other pods.
type Affinity struct {
	// nodeAffinity attracts the pods to nodes.
	//
	// +optional
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty"`

	// podAffinity attracts the pods to nodes or domains where certain other pods run.
	//
	// +optional
	PodAffinity *PodAffinity `json:"podAffinity,omitempty"`

	// podAntiAffinity keeps the pods away from nodes or domains where certain other pods run.
	//
	// +optional
	PodAntiAffinity *PodAffinity `json:"podAntiAffinity,omitempty"`
}

// NodeAffinity attracts pods to nodes.
type NodeAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution lists what a node must match.
	//
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// preferredDuringSchedulingIgnoredDuringExecution lists preferences, with a weight each.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredNode `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// NodeSelector selects nodes that match at least one of its terms.
type NodeSelector struct {
	// nodeSelectorTerms are alternatives: a node must match at least one.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms"`
}

// NodeSelectorTerm matches nodes that meet all its requirements.
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

// PreferredNode is a weighted preference for nodes.
type PreferredNode struct {
	// weight of this preference.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// preference is what the node should match.
	//
	// +required
	Preference NodeSelectorTerm `json:"preference"`
}

// PodAffinity relates pods to where certain other pods run.
type PodAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution lists terms that must all match.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// preferredDuringSchedulingIgnoredDuringExecution lists preferences, with a weight each.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// WeightedPodAffinityTerm is a weighted preference for nodes.
type WeightedPodAffinityTerm struct {
	// weight of this preference.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// podAffinityTerm is the term that should match.
	//
	// +required
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm"`
}

// PodAffinityTerm selects the nodes that share a domain with certain pods.
type PodAffinityTerm struct {
	// topologyKey is the node label whose value defines a domain, such as kubernetes.io/hostname.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`

	// labelSelector selects the pods. Without it, no pods match.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// namespaces of the pods. Default, if there is no namespaceSelector either: the same namespace.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Namespaces []string `json:"namespaces,omitempty"`

	// namespaceSelector selects namespaces of the pods, in addition to those listed; {} selects all.
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

	// tolerationSeconds is how long a pod may stay after a taint with effect NoExecute is added. Default:
	// forever.
	//
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// TopologySpreadConstraint defines how pods spread over domains.
type TopologySpreadConstraint struct {
	// maxSkew is how many more pods a domain may have than the one with the fewest.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxSkew int32 `json:"maxSkew"`

	// topologyKey is the node label whose value defines a domain, such as topology.kubernetes.io/zone.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	TopologyKey string `json:"topologyKey"`

	// whenUnsatisfiable defines whether pods wait if no node satisfies the constraint, or run anyway.
	//
	// +required
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	WhenUnsatisfiable corev1.UnsatisfiableConstraintAction `json:"whenUnsatisfiable"`

	// labelSelector selects the pods that are counted.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// minDomains is the minimum number of domains; it requires DoNotSchedule.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinDomains *int32 `json:"minDomains,omitempty"`

	// matchLabelKeys are labels for which a counted pod must have the same value as the pod to schedule.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty"`

	// nodeAffinityPolicy defines whether nodes that the pods cannot run on are counted. Default: Honor, not counted.
	//
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeAffinityPolicy *corev1.NodeInclusionPolicy `json:"nodeAffinityPolicy,omitempty"`

	// nodeTaintsPolicy defines whether tainted nodes are excluded. Default: Ignore, not excluded.
	//
	// +optional
	// +kubebuilder:validation:Enum=Honor;Ignore
	NodeTaintsPolicy *corev1.NodeInclusionPolicy `json:"nodeTaintsPolicy,omitempty"`
}
