// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Mode has a default and few values.
// +kubebuilder:validation:Enum=Fast;Slow
// +kubebuilder:default=Fast
type Mode string

// Base is embedded.
type Base struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z]+$`
	Name string `json:"name"`
	// +optional
	// +nullable
	Note *string `json:"note,omitempty"`
}

// KAPPSpec has whatever is awkward in a schema.
// +kubebuilder:validation:XValidation:rule="self.name != 'admin'",message="not that one"
type KAPPSpec struct {
	Base `json:",inline"`

	// Mode is of a type with markers, and has its own.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// Replicas is used by the scale subresource.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=1
	Replicas *int32 `json:"replicas,omitempty"`
	// Routes are maps of slices.
	Routes map[string][]string `json:"routes,omitempty"`
	// Matrix is a slice of slices.
	Matrix [][]int32 `json:"matrix,omitempty"`
	// Nested are maps of maps of structs.
	Nested map[string]map[string]Base `json:"nested,omitempty"`
	// Raw is anything.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Raw runtime.RawExtension `json:"raw,omitempty"`
	// Port is a number or a name.
	// +kubebuilder:validation:XIntOrString
	Port *intstr.IntOrString `json:"port,omitempty"`
	// Tolerations are from elsewhere.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Env has keys.
	// +listType=map
	// +listMapKey=name
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Template is large.
	Template corev1.PodTemplateSpec `json:"template,omitempty"`
	// Resources is a named map.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Headers are of a package of the standard library that has packages of others in it.
	// +optional
	Headers http.Header `json:"headers,omitempty"`
	// Items are limited one by one.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=9
	Items []string `json:"items,omitempty"`
}

// KAPPStatus is what it is.
type KAPPStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Replicas   int32              `json:"replicas,omitempty"`
	Selector   string             `json:"selector,omitempty"`
}

// KAPP is an acronym as a kind.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=kapps,singular=kapp,shortName=ka;kp,categories=all
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`,priority=1
// +kubebuilder:storageversion
// +kubebuilder:metadata:annotations="example.com/a=b",labels="c=d"
type KAPP struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   KAPPSpec   `json:"spec"`
	Status KAPPStatus `json:"status,omitempty"`
}

// KAPPList is a list.
// +kubebuilder:object:root=true
type KAPPList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KAPP `json:"items"`
}

// Plot is of the cluster, and its plural is irregular.
//
// +genclient
// +genclient:nonNamespaced
// +genclient:noStatus
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=plotten
type Plot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec PlotSpec `json:"spec"`
}

// PlotSpec refers to itself.
type PlotSpec struct {
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Next *PlotSpec `json:"next,omitempty"`
	Kind Kind      `json:"kind,omitempty"`
}

// Kind is copied by hand.
// +kubebuilder:object:generate=false
type Kind struct {
	Values []string `json:"values,omitempty"`
}

// DeepCopyInto is written by hand.
func (k *Kind) DeepCopyInto(out *Kind) { out.Values = append([]string(nil), k.Values...) }

// PlotList is a list.
// +kubebuilder:object:root=true
type PlotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Plot `json:"items"`
}

// Holder is generic, and left alone.
// +kubebuilder:object:generate=false
type Holder[T any] struct {
	Value T `json:"value"`
}
