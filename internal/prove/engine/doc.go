// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine runs campaigns: it learns what an operator does undisturbed, disturbs it in
// many separate runs, and compares the end of each run with the expected one.
//
// A run has its own cluster, forked at the right moment; an operator behind a lens; and a
// world, which mirrors all objects of the cluster. Disturbances happen in the lens, on the
// cluster, or to the operator's process.
package engine
