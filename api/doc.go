// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api is the parent of the packages that hold the kinds of the fleet, one for each API group and
// version. They are meant to be imported by anyone who works with these kinds from Go, so they import
// k8s.io/apimachinery, k8s.io/api and each other, and nothing else.
package api

//go:generate go run ../cmd/opdock generate --dir .. --quiet
