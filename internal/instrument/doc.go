// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instrument lets an operator say where its reconciles begin and end and what belongs to them, without a change to its
// source. The operator is built with a copy of the controller-runtime version that it uses, in which a few lines are added; the
// project's own files, and the versions of its dependencies, stay as they are.
package instrument
