// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

// The permissions of the controller. config/rbac/role.yaml is generated from these markers.
//
// +kubebuilder:rbac:groups=kanggege.k8sio.com,resources=kapps,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kanggege.k8sio.com,resources=kapps/status,verbs=patch
// Clusters that enforce OwnerReferencesPermissionEnforcement require this permission to set blockOwnerDeletion:
// +kubebuilder:rbac:groups=kanggege.k8sio.com,resources=kapps/finalizers,verbs=update
// +kubebuilder:rbac:groups=app.example.com,resources=appservices,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=kubegroup.generals.space,resources=podclusters,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=robot.llleon.io,resources=robots,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=collector.ip,resources=collectors,verbs=get;list;watch;create;patch;delete
