// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prove finds out whether an operator survives what production does to it: crashes, lost answers, refused writes, stale
// views, edits by others, failing pods and bad input.
//
// A campaign builds the operator of a project, unmodified, and runs a scenario undisturbed to learn what it does. Then it runs the
// scenario again and again, each time on a cluster of its own and with one disturbance, and compares how it ends:
//
//	func TestProve(t *testing.T) {
//		prove.Test(t, prove.Options{Dir: "../..", Budget: time.Minute})
//	}
//
// Clusters are control planes of package cluster: real API servers and controllers in one process each, with simulated nodes.
package prove
