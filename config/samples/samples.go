// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package samples holds example objects of the fleet's kinds, so that programs can apply them.
package samples

import "embed"

// Manifests are the samples.
//
//go:embed *_v*.yaml
var Manifests embed.FS
