// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

// The names of generated files and folders, the same as those of kube_codegen.sh and
// controller-gen.
const (
	deepcopyFile = "zz_generated.deepcopy.go"
	defaultsFile = "zz_generated.defaults.go"
	registerFile = "zz_generated.register.go"
	openAPIFile  = "zz_generated.openapi.go"

	clientsetPart      = "clientset"
	versionedClientset = "versioned"
	listersPart        = "listers"
	informersPart      = "informers"
	applyPart          = "applyconfiguration"
)
