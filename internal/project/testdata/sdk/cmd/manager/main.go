// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command main stands for an operator.
package main

func main() {}
