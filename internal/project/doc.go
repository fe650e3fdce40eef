// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package project reads a Go operator project on disk, in any common layout: its main package, CRDs, manifests,
// webhooks and samples. It changes nothing and needs no cluster.
//
// It supports four layouts: kubebuilder v4, older kubebuilder, operator-sdk, and plain folders as in client-go's
// example. They differ only in the locations of files, so users of a Project need not distinguish them.
package project
