// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload is what the kinds that run pods have in common: the pod template that their specs become, its security
// settings, the strategy of a Deployment, and which changes of pods and Deployments matter to them.
package workload
