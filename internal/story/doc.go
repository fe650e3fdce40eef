// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package story tells what led to what in the stream of a lens: which events of watches led to which reconcile, and what that
// read and wrote. Its records are those of package why, so whatever shows one shows the other.
//
// An operator that marks its reconciles says itself where they begin and end and which requests belong to them. What led to
// them is inferred: an event is a cause if it arrived after the reconcile of the same object before, and is about that object,
// an object it owns, or else one that the reconcile read.
//
// Without marks, writes are grouped by the object that they belong to, and by time.
package story
