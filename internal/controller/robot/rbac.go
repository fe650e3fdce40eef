// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package robot

// The permissions of the controller. config/rbac/role.yaml is generated from these markers.
//
// +kubebuilder:rbac:groups=robot.llleon.io,resources=robots,verbs=get;list;watch
// +kubebuilder:rbac:groups=robot.llleon.io,resources=robots/status,verbs=patch
// Clusters that enforce OwnerReferencesPermissionEnforcement require this permission to set blockOwnerDeletion:
// +kubebuilder:rbac:groups=robot.llleon.io,resources=robots/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
