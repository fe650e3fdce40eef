// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package applyschema tells applyconfiguration-gen how objects of a custom kind are merged: which lists have keys,
// which maps are replaced as a whole. Without that it leaves out the functions that extract what a field manager
// owns, and the fake clientset refuses every object.
//
// The API server merges by the CustomResourceDefinition, so that is where this comes from. A schema made from the Go
// types could differ from it, for instance in a default of a list's key.
package applyschema
