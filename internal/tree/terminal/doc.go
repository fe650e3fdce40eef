// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal draws a tree of objects on a terminal.
//
// A View turns a snapshot of a tree.Model into lines that fit a window; it is pure. A Screen draws the lines on a
// terminal, and Actions translates keys.
package terminal
