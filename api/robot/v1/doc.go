// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds Robot, a Deployment of workers with a name of its own.
//
// +kubebuilder:object:generate=true
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=robot.llleon.io
package v1
