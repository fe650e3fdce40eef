// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds AppService under the version it first had. It has the spec and status of version v1,
// so that an object loses nothing whichever version it is written or read through. New code uses v1.
//
// +kubebuilder:object:generate=true
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=app.example.com
package v1alpha1
