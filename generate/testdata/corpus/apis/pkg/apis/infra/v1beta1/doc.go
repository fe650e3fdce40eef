// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 has kinds of the cluster.
//
// +k8s:deepcopy-gen=package,register
// +groupName=infra.corp.example.com
// +groupGoName=InfraStructure
package v1beta1
