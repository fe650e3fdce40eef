// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate generates everything that is derived from the Go types of an API: deep copies, CRDs, RBAC and
// webhook manifests, defaulters, registration, clients, listers, informers, apply configurations and OpenAPI
// definitions.
//
// It uses the generators of sigs.k8s.io/controller-tools and k8s.io/code-generator as libraries, so the output is the
// same as that of their own programs, byte for byte. The difference is in how they run: packages are found by their
// markers, every Go package is loaded once for all generators, the generators run concurrently, and no file is
// written before all of them have succeeded.
//
//	result, err := generate.Run(ctx, generate.Options{Dir: "."})
//
// A run has these stages, each in its own file:
//
//	config    what opdock.yaml and the options ask for
//	discover  which packages of the module have which markers
//	stamp     whether anything has changed since the last run
//	plan      which generator works on which packages and where its files go
//	load      the packages and their imports, parsed and type-checked
//	gengo, controllergen  the generators, which write into memory
//	write     what is different from the files on disk, all of it or nothing
package generate
