// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree models custom resources with all objects that belong to them, by their actual owner references, down
// to the pods.
//
// Watch feeds a Model with the kinds of the fleet, and Discovery with all custom resources of a cluster, whatever kinds come
// and go. Describe says in a few words how an object is, and Grow makes a tree of objects; both are pure. How a tree looks is
// decided elsewhere: package terminal draws it with characters, and package page serves it to browsers.
package tree
