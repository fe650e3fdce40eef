// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload contains the code that the kinds that run pods share: the pod template, its
// security settings, the strategy of a Deployment, and which changes of pods and Deployments matter
// to them.
package workload
