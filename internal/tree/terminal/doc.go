// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal draws a tree of objects on a terminal.
//
// A View turns a snapshot of a tree.Model into lines that fit into a window, which is pure. A Screen puts the lines on a
// terminal, and Actions translates what the user types.
package terminal
