// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents runs the command lines that docs/coming-from.md shows, so they do what it says.
package documents
