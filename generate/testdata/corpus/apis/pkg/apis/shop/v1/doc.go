// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 has everything that is awkward about types, for the generators of k8s.io/code-generator.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +k8s:defaulter-gen=TypeMeta
// +groupName=shop.example.com
package v1
