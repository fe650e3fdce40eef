// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/corpus/pkg/shapes"
)

// Order has a scale subresource and methods of its own.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Order struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   OrderSpec   `json:"spec"`
	Status OrderStatus `json:"status,omitempty"`
}

// OrderList is a list of orders.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OrderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Order `json:"items"`
}

// Common is embedded.
type Common struct {
	// Paused stops it.
	Paused bool `json:"paused,omitempty"`
	// Labels are of a named map.
	Labels Labels `json:"labels,omitempty"`
}

// Labels is a map with a name.
type Labels map[string]string

// Names is a slice with a name.
type Names []string

// Size is an enumeration.
// +enum
type Size string

const (
	// Small is the smallest.
	Small Size = "Small"
	// Large is the largest.
	Large Size = "Large"
)

// OrderSpec holds maps of slices, slices of maps and types from elsewhere.
type OrderSpec struct {
	Common            `json:",inline"`
	*shapes.Dimension `json:",inline"`

	// Size has a default.
	// +default="Small"
	// +optional
	Size Size `json:"size,omitempty"`

	// Routes are maps of slices.
	Routes map[string][]string `json:"routes,omitempty"`
	// Nested are maps of maps of pointers.
	Nested map[string]map[string]*int32 `json:"nested,omitempty"`
	// Matrix is a slice of slices.
	Matrix [][]Item `json:"matrix,omitempty"`
	// Pointers are pointers to structs.
	// +listType=map
	// +listMapKey=name
	Pointers []*Item `json:"pointers,omitempty"`
	// ByName is a map of structs.
	// +mapType=atomic
	ByName map[string]Item `json:"byName,omitempty"`
	// Slices is a map of slices of pointers.
	Slices map[string][]*Item `json:"slices,omitempty"`
	// Names is of a named slice.
	Names Names `json:"names,omitempty"`
	// Bytes are bytes.
	Bytes []byte `json:"bytes,omitempty"`
	// Raw is anything.
	Raw runtime.RawExtension `json:"raw,omitempty"`
	// Port is a number or a name.
	Port *intstr.IntOrString `json:"port,omitempty"`
	// Amount is a quantity.
	Amount *resource.Quantity `json:"amount,omitempty"`
	// Resources is a map with a named key.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// Template is a large type from elsewhere.
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`
	// Tolerations are a slice of structs from elsewhere.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// Selector picks.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Since is a time.
	Since *metav1.Time `json:"since,omitempty"`
	// Every is a duration.
	Every metav1.Duration `json:"every,omitempty"`
	// Shape is from another package of the module.
	Shape shapes.Shape `json:"shape"`
	// KAPP is an acronym.
	KAPP *KAPPReference `json:"kapp,omitempty"`

	// Deprecated: nobody uses it.
	Old string `json:"old,omitempty"`
}

// Item is in many places.
type Item struct {
	// +required
	Name string `json:"name"`
	// +default=1
	Count *int32 `json:"count,omitempty"`
	Next  *Item  `json:"next,omitempty"`
}

// KAPPReference names something with an acronym.
type KAPPReference struct {
	APIVersion string `json:"apiVersion"`
	UID        string `json:"uid,omitempty"`
	URLs       []string
}

// OrderStatus has conditions.
type OrderStatus struct {
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Replicas   int32              `json:"replicas"`
}

// HTTPRoute has acronyms, an irregular plural and neither status nor all verbs.
//
// +genclient
// +genclient:noStatus
// +genclient:skipVerbs=deleteCollection,patch
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type HTTPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec HTTPRouteSpec `json:"spec"`
}

// HTTPRouteSpec is small.
type HTTPRouteSpec struct {
	Hosts []string `json:"hosts,omitempty"`
}

// HTTPRouteList is a list.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type HTTPRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HTTPRoute `json:"items"`
}

// Internal is not copied.
//
// +k8s:deepcopy-gen=false
// +k8s:openapi-gen=false
type Internal struct {
	Channel chan int
}

func init() {
	localSchemeBuilder.Register(addDefaultingFuncs)
	// a comment at the end of a function, right before a type
}

// Later follows a function without an empty line.
type Later struct{ A, B string }
