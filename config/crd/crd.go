// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd holds the CustomResourceDefinitions of the fleet, so that programs can install them.
package crd

import "embed"

// Bases are the manifests, one for each kind.
//
//go:embed bases/*.yaml
var Bases embed.FS
