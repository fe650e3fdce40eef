// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest gives tests a real control plane.
//
// All tests of a test binary share one control plane. It starts with the first test that needs it and
// ends with the process, even if the process is killed. Each test has its own namespace, so tests can
// run in parallel:
//
//	func TestRollout(t *testing.T) {
//		c := clustertest.Shared(t)
//		namespace := clustertest.Namespace(t)
//		client, err := kubernetes.NewForConfig(c.Config())
//		…
//	}
//
// The first use on a machine compiles the control plane, which takes minutes. Run the tests with a
// longer -timeout then, or build it beforehand with "opdock up". A test that changes cluster-scoped
// objects or stops the cluster needs its own cluster: use a copy of a [Base], or call cluster.Start
// with empty options.
package clustertest
