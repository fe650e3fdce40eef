// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package world follows everything that a cluster has, by watching: what is there, when something last changed, and how often
// each object was created and deleted. It sees all clients alike, and asks nobody for anything twice.
package world
