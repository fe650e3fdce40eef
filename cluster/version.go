// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

// KubernetesVersion is the version of Kubernetes that the control plane is compiled from, and what its
// API server reports.
const KubernetesVersion = "v1.36.3"
