// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest gives tests a real control plane.
//
// All tests of a test binary share one, which is started when the first test asks for it and ends with
// the process, even if that is killed. Each test works in a namespace of its own, so tests may run in
// parallel:
//
//	func TestRollout(t *testing.T) {
//		c := clustertest.Shared(t)
//		namespace := clustertest.Namespace(t)
//		client, err := kubernetes.NewForConfig(c.Config())
//		…
//	}
//
// The first use on a machine compiles the control plane, which takes some minutes; run the tests with a
// longer -timeout then, or build it beforehand with "opdock up". A test that needs a cluster to itself,
// because it changes what has no namespace or stops the cluster, gets a copy of a [Base], or calls
// cluster.Start with empty options.
package clustertest
