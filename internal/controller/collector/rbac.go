// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

// The permissions of the controller. config/rbac/role.yaml is generated from these markers.
//
// +kubebuilder:rbac:groups=collector.ip,resources=collectors,verbs=list;watch
// +kubebuilder:rbac:groups=collector.ip,resources=collectors/status,verbs=patch
// Clusters that enforce OwnerReferencesPermissionEnforcement require this permission to set blockOwnerDeletion:
// +kubebuilder:rbac:groups=collector.ip,resources=collectors/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
