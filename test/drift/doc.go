// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift proves that a child is what its owner's spec says, all of it: whatever a random editor changes in the
// children of the fleet is corrected, unless a documented owner has a right to the field.
package drift
