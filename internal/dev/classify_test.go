// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import "testing"

func TestClassify(t *testing.T) {
	kubebuilder := layout{main: "cmd", samples: []string{"config/samples"}, manifests: []string{"config"}}
	plain := layout{main: ".", samples: []string{"artifacts", "deploy"}, manifests: []string{"artifacts", "deploy"}}
	const types = workGenerate | workManifests | workBuild
	for name, test := range map[string]struct {
		in   layout
		file change
		want work
	}{
		"controller":                 {kubebuilder, change{path: "internal/controller/captain.go"}, workBuild},
		"controller with a new role": {kubebuilder, change{path: "internal/controller/captain.go", generate: true}, types},
		"type":                       {kubebuilder, change{path: "api/v1/captain_types.go", generate: true}, types},
		"body of a method of a type": {kubebuilder, change{path: "api/v1/captain_types.go"}, workBuild},
		"main":                       {kubebuilder, change{path: "cmd/main.go"}, workBuild | workFlags},
		"main beside go.mod":         {plain, change{path: "main.go"}, workBuild | workFlags},
		"not main":                   {plain, change{path: "controller.go/x.go"}, workBuild},
		"module":                     {kubebuilder, change{path: "go.mod"}, types | workFlags},
		"checksums":                  {kubebuilder, change{path: "go.sum"}, workBuild},
		"workspace elsewhere":        {kubebuilder, change{path: "/src/go.work"}, types | workFlags},
		"another module":             {kubebuilder, change{path: "/src/lib/lib.go"}, workBuild},
		"sample":                     {kubebuilder, change{path: "config/samples/crew_v1_captain.yaml"}, workSamples},
		"sample among the manifests": {plain, change{path: "artifacts/examples/foo.yaml"}, workSamples | workManifests},
		"role":                       {kubebuilder, change{path: "config/rbac/role.yaml"}, workManifests},
		"CRD by hand":                {plain, change{path: "deploy/crd.yml"}, workSamples | workManifests},
		"embedded file":              {kubebuilder, change{path: "internal/assets/page.html", embedded: true}, workBuild},
		"embedded manifest":          {kubebuilder, change{path: "config/crd/bases/a.yaml", embedded: true}, workBuild | workManifests},
		"settings of opdock":         {kubebuilder, change{path: "opdock.yaml"}, workGenerate | workManifests},
		"documentation":              {kubebuilder, change{path: "README.md"}, 0},
		"documentation beside roles": {kubebuilder, change{path: "config/rbac/README.md"}, 0},
		"YAML that is no manifest":   {kubebuilder, change{path: ".golangci.yml"}, 0},
		"a folder with a like name":  {kubebuilder, change{path: "configuration/x.yaml"}, 0},
		"Makefile":                   {kubebuilder, change{path: "Makefile"}, workGenerate | workManifests},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.in.classify(test.file); got != test.want {
				t.Errorf("got %06b, want %06b", got, test.want)
			}
		})
	}
}
