// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package applyschema provides the merge rules of custom resources to applyconfiguration-gen: which lists have keys,
// which maps are atomic. Without them, it omits the functions that extract the fields of a field manager, and the
// fake clientset refuses every object.
//
// The API server merges by the CustomResourceDefinition, so that is where this comes from. A schema made from the Go
// types could differ from it, for instance in a default of a list's key.
package applyschema
