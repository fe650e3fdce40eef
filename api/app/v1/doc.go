// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds AppService, a web application from one object: a Deployment, a Service and what goes with
// them. Objects are stored in this version.
//
// +kubebuilder:object:generate=true
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
// +groupName=app.example.com
package v1
