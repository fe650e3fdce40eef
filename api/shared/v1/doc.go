// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds what several kinds of the fleet have in common: a pod template, a rollout strategy and
// the vocabulary of their conditions. It has no API group; its types appear only inside the kinds.
//
// The pod template is a selection of corev1.PodTemplateSpec, because all of that makes a
// CustomResourceDefinition too large for kubectl apply. What is here has the same JSON as in corev1, so that
// encoding one and decoding it as the other is a complete conversion; only a container's image may be left
// out, which then is that of the object around it.
//
// +kubebuilder:object:generate=true
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
package v1
