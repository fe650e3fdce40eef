// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine runs campaigns: it learns what an operator does undisturbed, disturbs it in many runs of their own, and judges
// each of them by how it should have ended.
//
// A run has a cluster of its own, which is a copy of another at the right moment; an operator on it, which works through a lens;
// and a world, which follows everything that the cluster has. Disturbances are made in the lens, on the cluster, or to the process
// of the operator.
package engine
