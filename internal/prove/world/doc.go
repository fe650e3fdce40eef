// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package world mirrors a cluster by watching: all objects, when something last changed, and how
// often each object was created and deleted.
package world
