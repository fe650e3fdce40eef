// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dev runs an operator while it is being written: it builds and starts the operator on a cluster under the identity
// of its own manifests, watches the project's files, and does again what a change makes necessary, and nothing else.
//
// A [Session] is a loop around rounds. What a round has to do follows from the files that have changed; each file of this
// package is one concern of it:
//
//	watch     which files may have changed
//	files     which of them really have, and whether generators care
//	classify  what is to be done about it
//	build     the operator's binary
//	flags     what the operator can be told on its command line
//	ports     those that are free, and who has the others
//	identity  who the operator is to the API server
//	apply     CRDs, roles and samples, as far as they have changed
//	webhook   certificates, and configurations that lead to this machine
//	process   the running operator
//	ready     whether it reconciles, as far as can be told from outside
//	report    what the user gets to see
package dev
