// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller has markers for RBAC and webhooks.
package controller

// +kubebuilder:rbac:groups=garden.example.com,resources=kapps,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=garden.example.com,resources=kapps/status;kapps/finalizers,verbs=update
// +kubebuilder:rbac:groups="",namespace=garden,resources=secrets,verbs=get
// +kubebuilder:rbac:urls=/metrics,verbs=get

// Reconcile has a marker inside.
func Reconcile() {
	// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=*
}

// +kubebuilder:webhook:path=/mutate-v1-kapp,mutating=true,failurePolicy=fail,sideEffects=None,groups=garden.example.com,resources=kapps,verbs=create;update,versions=v1,name=mkapp.kb.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-v1-kapp,mutating=false,failurePolicy=ignore,sideEffects=None,groups=garden.example.com,resources=kapps,verbs=create;update;delete,versions=v1,name=vkapp.kb.io,admissionReviewVersions=v1,timeoutSeconds=5
