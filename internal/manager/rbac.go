// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

// The permissions of the manager itself. config/rbac/role.yaml is generated from these markers and those
// of the kinds.
//
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
