// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package dev

// buildFlags shorten the build.
var buildFlags = []string{"-ldflags=-w"}
