// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instrument builds operators that mark where reconciles begin and end and which
// requests belong to them, without a change to their source. The operator is built with a copy
// of its controller-runtime version that has a few additional lines. The project's files and
// the versions of its dependencies do not change.
package instrument
