// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace shows what a program does to an API server: a line for each write and each error while it happens, and a summary
// at the end. It works on the events of a lens, live or from a recording.
package trace
