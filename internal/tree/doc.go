// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree models custom resources and all objects that belong to them, by their owner references, down to the
// pods.
//
// Watch fills a Model with the kinds of the fleet, and Discovery fills it with all custom resources of a cluster,
// while kinds are added and removed. Describe describes the state of an object in a few words, and Grow builds trees
// of objects. Both are pure functions. Package terminal draws a tree with characters, and package page serves it to
// browsers.
package tree
