// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds KAPP, an application that is made of objects of the other kinds of the fleet.
//
// +kubebuilder:object:generate=true
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=kanggege.k8sio.com
package v1
