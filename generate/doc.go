// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate makes everything that is generated from the Go types of an API: deep copies, CRDs, RBAC and webhook
// manifests, defaulters, registration, clients, listers, informers, apply configurations and OpenAPI definitions.
//
// The generators are those of sigs.k8s.io/controller-tools and k8s.io/code-generator, used as libraries, so that the
// output is what their own programs write, byte for byte. What is different is what surrounds them: the packages are found
// by their markers, every Go package is loaded once and for all generators, the generators run side by side, and nothing
// is written before all of them have succeeded.
//
//	result, err := generate.Run(ctx, generate.Options{Dir: "."})
//
// A run passes through these stations, each in a file of its own:
//
//	config    what opdock.yaml and the options ask for
//	discover  which packages of the module have which markers
//	stamp     whether anything has changed since the last run
//	plan      which generator works on which packages and where its files go
//	load      the packages and their imports, parsed and type-checked
//	gengo, controllergen  the generators, which write into memory
//	write     what is different from the files on disk, all of it or nothing
package generate
