// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clienttest gives the examples of the client an API server that serves our kinds.
//
// An example has no *testing.T to get one with, and it should read as the program that a user would write. So the
// server is started by TestMain, and the example finds it where any program does, in $KUBECONFIG.
package clienttest
