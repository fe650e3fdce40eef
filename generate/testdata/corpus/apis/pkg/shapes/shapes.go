// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shapes has types without a group.
//
// +k8s:deepcopy-gen=package
package shapes

// Dimension is embedded by others.
type Dimension struct {
	Width  int64  `json:"width,omitempty"`
	Height *int64 `json:"height,omitempty"`
}

// Shape has a method that copies, written by hand.
type Shape struct {
	Points []Point `json:"points,omitempty"`
}

// Point is a generic type, filled in.
type Point struct {
	X, Y float64 `json:",omitempty"`
}

// DeepCopyInto is written by hand.
func (in *Shape) DeepCopyInto(out *Shape) {
	*out = *in
	out.Points = append([]Point(nil), in.Points...)
}

// Pair is generic. The generators leave it alone.
//
// +k8s:deepcopy-gen=false
type Pair[K comparable, V any] struct {
	Key   K
	Value V
}

// Swap is a generic function.
func Swap[A, B any](a A, b B) (B, A) { return b, a }
