// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights derives the least RBAC rules of an operator from recordings of its requests, and compares them with
// the rules that its project grants.
//
// Collect reads recordings, Merge adds them up, and Compare makes a Report of them and of the rules that are granted. All
// but reading is pure. Three things are kept apart, and each says what it is based on: what was asked for, what is
// proposed, which is more general where an operator does the same to any object, and what is granted.
package rights
