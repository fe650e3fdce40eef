// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prove_test runs campaigns on a small operator whose defects are known.
package prove_test
