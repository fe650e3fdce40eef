// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

// The permissions of the controller. config/rbac/role.yaml is generated from these markers.
//
// +kubebuilder:rbac:groups=kubegroup.generals.space,resources=podclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=kubegroup.generals.space,resources=podclusters/status,verbs=patch
// Clusters that enforce OwnerReferencesPermissionEnforcement require this permission to set blockOwnerDeletion:
// +kubebuilder:rbac:groups=kubegroup.generals.space,resources=podclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
