// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prove finds out whether an operator recovers from what happens in production: crashes, lost responses,
// refused writes, stale caches, edits by other users, failing pods and bad input.
//
// A campaign builds the operator of a project, unmodified, and runs a scenario undisturbed to learn what it does.
// Then it repeats the scenario, each time on a new cluster and with one disturbance, and compares the end states:
//
//	func TestProve(t *testing.T) {
//		prove.Test(t, prove.Options{Dir: "../..", Budget: time.Minute})
//	}
//
// Clusters are control planes of package cluster: real API servers and controllers in one process each, with simulated nodes.
package prove
