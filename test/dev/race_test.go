// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build race

package dev

// buildFlags let the program be built as the tests are. A race that it finds changes its exit code.
var buildFlags = []string{"-race"}
