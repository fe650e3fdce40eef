// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package project reads what a Go operator project on disk is made of, whichever tool has laid it out: where its main package is,
// and its CRDs, manifests, webhooks and samples. It changes nothing and needs no cluster.
//
// Four layouts are known: that of kubebuilder v4, that of older kubebuilder, that of operator-sdk, and plain folders as in
// client-go's own example. They differ in where things are and not in what they are, so that whoever uses a Project need
// not care which it is.
package project
