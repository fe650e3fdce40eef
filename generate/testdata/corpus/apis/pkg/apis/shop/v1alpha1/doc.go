// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=shop.example.com

// Package v1alpha1 is an older version with the same kind.
package v1alpha1
