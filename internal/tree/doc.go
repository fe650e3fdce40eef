// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree shows what becomes of the fleet's objects: each of them with all that belongs to it, by the owner
// references that the objects really have, down to the pods.
//
// Watch feeds a Model with what the API server says. Describe says in a few words how an object is, Grow makes a tree of
// objects, and a View makes lines of a tree that fit into a window; these three are pure. A Screen puts the lines on a
// terminal.
package tree
