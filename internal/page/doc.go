// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page serves a page on loopback that shows what becomes of objects and why: the tree of all that belongs to a
// custom resource, and beside it which change led to which event, reconcile and write.
//
// Start listens and serves until it is closed. What the page shows comes from a tree.Model, and from the endpoint of a
// recorder of package why if there is one. The files in static are served as they are: there is nothing to build.
package page
