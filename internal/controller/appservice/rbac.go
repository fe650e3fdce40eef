// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

// The permissions of the controller. config/rbac/role.yaml is generated from these markers.
//
// +kubebuilder:rbac:groups=app.example.com,resources=appservices,verbs=get;list;watch
// +kubebuilder:rbac:groups=app.example.com,resources=appservices/status,verbs=patch
// Clusters that enforce OwnerReferencesPermissionEnforcement require this permission to set blockOwnerDeletion:
// +kubebuilder:rbac:groups=app.example.com,resources=appservices/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
