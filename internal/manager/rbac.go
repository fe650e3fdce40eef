// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

// What the manager itself may do; config/rbac/role.yaml is made of these lines and of those of the kinds.
//
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
