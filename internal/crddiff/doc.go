// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crddiff compares two releases of CustomResourceDefinitions, and reports what an upgrade means for existing
// objects.
//
// Compare needs the definitions only. Validate and Pruned take objects, as they are stored, and find those that the new
// definitions no longer accept, and the fields that they lose.
package crddiff
