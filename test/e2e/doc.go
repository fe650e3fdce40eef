// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e proves on a real control plane that it behaves like any other Kubernetes, that simulated pods do
// what their annotation says, that faults end in a clear error with nothing lost, and that the command line and
// the envtest assets hold what they promise. There is nothing in it but tests.
package e2e
