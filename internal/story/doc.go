// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package story infers causes and effects from the stream of a lens: which watch events
// triggered which reconcile, and what the reconcile read and wrote. It produces records of
// package why, so they can be shown in the same way.
//
// The marks of an operator show where reconciles begin and end and which requests belong to
// them. Causes are inferred: an event is a cause if it arrived after the previous reconcile of
// the same object, and is about that object, an object it owns, or else one that the reconcile
// read.
//
// Writes without marks are grouped by the object that they belong to, and by time. An operator
// may have both: controllers that use client-go alone mark nothing.
package story
