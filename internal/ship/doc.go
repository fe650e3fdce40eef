// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ship builds what users install: one manifest of everything in config/default, the files that the Helm
// chart shares with config, and the image of the manager. It needs no tool except Go.
package ship

// After the CRDs and the role, which are made from the code by the go:generate line of package api.
//go:generate go -C ../.. run ./hack/ship chart
