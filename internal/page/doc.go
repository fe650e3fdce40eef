// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page serves a live page on loopback: the tree of custom resources and the objects that they own and, beside
// it, which change triggered which event, reconcile and write.
//
// Start listens and serves until it is closed. What the page shows comes from a tree.Model, and from the endpoint of a
// recorder of package why if there is one. The files in static are served unchanged: there is nothing to build.
package page
