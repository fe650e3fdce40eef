// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"os"
	"path/filepath"
	"testing"
)

const corpus = "example.com/corpus"

// TestSameAsUpstream runs upstream's programs, as kubebuilder's Makefile and kube_codegen.sh do, and this package on the
// same modules. They differ in their layout and in who made them up: the corpus has what is awkward, and the kinds of
// this repository are what people write.
func TestSameAsUpstream(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs nine programs")
	}
	for name, test := range map[string]struct {
		from, module string
		options      Options
		config       string
		upstream     func(upstream)
	}{
		"one group, by kubebuilder": {"testdata/corpus/single", corpus, Options{}, "", upstreamSingle},
		"groups in pkg/apis, by code-generator": {
			"testdata/corpus/apis", corpus, Options{}, "generate: {client: {pluralExceptions: ['Endpoints:Endpoints']}}", upstreamAPIs,
		},
		"groups in api, by both": {
			"../api", "github.com/opdock/opdock", Options{},
			"generate: {yamlHeaderFile: header.yaml.txt, skip: [client, lister, informer], deepcopy: {tool: deepcopy-gen}, client: {applyPackages: [api/shared/v1]}}",
			upstreamOwn,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, got := newModule(t, test.from, test.module), newModule(t, test.from, test.module)
			for _, dir := range []string{want, got} {
				if test.module != corpus { // the folder is the module's api
					moveInto(t, dir, "api")
				}
				writeFile(t, filepath.Join(dir, "hack/boilerplate.go.txt"), "// Copyright YEAR Nobody.\n")
				writeFile(t, filepath.Join(dir, "header.yaml.txt"), "# Copyright Nobody.\n")
				writeFile(t, filepath.Join(dir, ConfigFileName), test.config)
			}
			test.upstream(upstream{t, want})
			test.options.Dir, test.options.CacheDir = got, t.TempDir()
			result, err := Run(t.Context(), test.options)
			if err != nil {
				t.Fatal(err)
			}
			if result.Files == 0 || len(result.Changes) < result.Files {
				t.Errorf("%d files, %d changes", result.Files, len(result.Changes))
			}
			expectSameTrees(t, want, got)
		})
	}
}

// moveInto moves everything except for the module's own files into a folder.
func moveInto(t *testing.T, dir, folder string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "go.mod" && name != "go.sum" {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, folder, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const header = "hack/boilerplate.go.txt"

func upstreamSingle(u upstream) {
	u.run("controller-gen", "object:headerFile="+header+",year="+thisYear(), "crd", "rbac:roleName=manager-role", "webhook", "paths=./...",
		"output:crd:artifacts:config=config/crd/bases")
	u.clients("client", "", nil, []string{"api/v1"})
}

func upstreamAPIs(u upstream) {
	packages := u.packages("pkg/apis/infra/v1beta1", "pkg/apis/shop/v1", "pkg/apis/shop/v1alpha1", "pkg/shapes")
	groups := packages[:3]
	shop := packages[1:3]
	u.run("deepcopy-gen", append([]string{"--output-file", deepcopyFile, "--go-header-file", header}, packages...)...)
	u.run("defaulter-gen", "--output-file", defaultsFile, "--go-header-file", header, shop[0])
	u.run("register-gen", append([]string{"--output-file", registerFile, "--go-header-file", header}, groups...)...)
	u.clients("pkg/client", "pkg/apis/", nil, []string{"infra/v1beta1", "shop/v1", "shop/v1alpha1"}, "--plural-exceptions", "Endpoints:Endpoints")
	u.openAPI("pkg/client/openapi", shop...)
}

// upstreamOwn leaves out the three generators that see no more of a type than its name and its markers.
func upstreamOwn(u upstream) {
	all := u.packages("api/app/v1", "api/app/v1alpha1", "api/collector/v1", "api/kapp/v1", "api/kubegroup/v1", "api/robot/v1", "api/shared/v1")
	u.run("controller-gen", "crd:headerFile=header.yaml.txt", "paths=./...", "output:crd:artifacts:config=config/crd/bases")
	u.run("deepcopy-gen", append([]string{"--output-file", deepcopyFile, "--go-header-file", header}, all...)...)
	u.run("applyconfiguration-gen", append([]string{
		"--go-header-file", header, "--output-dir", "client/" + applyPart, "--output-pkg", u.module() + "/client/" + applyPart,
	}, all...)...)
	u.openAPI("client/openapi", all...)
}
