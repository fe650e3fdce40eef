// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apitest holds the tests of the kinds as the API server sees them: what their schemas accept, refuse
// and fill in, and that they follow the conventions for Kubernetes APIs.
package apitest
