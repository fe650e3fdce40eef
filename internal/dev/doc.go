// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dev runs an operator during development: it builds and starts the operator on a cluster with the identity from
// its own manifests, watches the project's files, and repeats only the steps that a change requires.
//
// A [Session] is a loop of rounds. The changed files determine the work of a round. Each file of this package is one
// concern:
//
//	watch     which files may have changed
//	files     which of them have really changed, and whether generators read them
//	classify  the work that a change requires
//	build     the operator's binary
//	flags     the operator's flags and command line
//	ports     free ports, and the processes that use others
//	identity  the operator's lease and environment
//	apply     changed CRDs, roles and samples
//	webhook   certificates, and webhook configurations for this machine
//	process   the running operator
//	ready     whether it reconciles, as far as that is visible from outside
//	report    the output for the user
package dev
