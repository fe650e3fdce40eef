// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upstream pins upstream's end-to-end tests to the version of the embedded control plane. make conformance
// compiles them, and Ginkgo, which runs them in parallel.
//
// It is a separate module for the same reason as the control plane: it needs all k8s.io modules at the version of the
// server. All versions that the two modules share are the same, so most packages compile only once for both.
package upstream

import (
	_ "k8s.io/kubernetes/test/e2e" // makes go mod tidy keep the dependencies of these tests
)
