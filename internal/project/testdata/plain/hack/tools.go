// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build tools

package main

func main() {}
