// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package projectfile reads and writes PROJECT, the file in which kubebuilder records what it has created in a
// project.
//
// Both programs write the same file, so nothing is lost on the way: keys that this package does not know, comments and
// the order of keys stay as they are.
package projectfile
