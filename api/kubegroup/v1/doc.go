// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds PodCluster, a set of pods with stable names that is managed without another workload in
// between.
//
// +kubebuilder:object:generate=true
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=kubegroup.generals.space
package v1
