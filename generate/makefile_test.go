// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestOptionsInAMakefile(t *testing.T) {
	for name, test := range map[string]struct {
		makefile string
		want     toolOptions
	}{
		"kubebuilder": {
			`LOCALBIN ?= $(shell pwd)/bin
CONTROLLER_GEN ?= $(LOCALBIN)/controller-gen
manifests: controller-gen
	"$(CONTROLLER_GEN)" rbac:roleName=manager-role crd:maxDescLen=0 webhook paths="./..." output:crd:artifacts:config=config/crd/bases
generate: controller-gen
	"$(CONTROLLER_GEN)" object:headerFile="hack/boilerplate.go.txt" paths="./..."
$(CONTROLLER_GEN): $(LOCALBIN)
	$(call go-install-tool,$(CONTROLLER_GEN),sigs.k8s.io/controller-tools/cmd/controller-gen,$(CONTROLLER_TOOLS_VERSION))
`, toolOptions{
				"crd": {"maxDescLen": "0", "dir": "config/crd/bases"}, "rbac": {"roleName": "manager-role"}, "webhook": {},
				"object": {"headerFile": "hack/boilerplate.go.txt"},
			},
		},
		"variables and several lines": {
			"CRD_OPTIONS ?= \"crd:allowDangerousTypes=true,maxDescLen=${LENGTH}\"\nLENGTH := 7\nCRD_OPTIONS ?= crd\n" +
				"manifests:\n\tgo tool controller-gen $(CRD_OPTIONS) \\\n\t  paths=./api/... \\\n\t  output:crd:dir=$(CHART)/crds\n",
			toolOptions{"crd": {"allowDangerousTypes": "true", "maxDescLen": "7", "dir": "$(CHART)/crds"}},
		},
		"calls that agree in part": {
			"manifests:\n\tcontroller-gen crd:maxDescLen=0,allowDangerousTypes=true paths=./a output:crd:dir=a\n" +
				"\tcontroller-gen crd:maxDescLen=0 paths=./b output:crd:dir=b\n",
			toolOptions{"crd": {"maxDescLen": "0"}},
		},
		"a variable that refers to itself": {"A = $(A) crd\nall:\n\tcontroller-gen $(A)\n", toolOptions{"crd": {}}},
		"calls that are comments": {
			"all:\n\t# controller-gen crd:maxDescLen=0\n\t@#controller-gen rbac\n\t@controller-gen crd:maxDescLen=3\n", toolOptions{"crd": {"maxDescLen": "3"}},
		},
		"other tools": {"all:\n\tgo build crd:maxDescLen=1\n", toolOptions{}},
		"nothing":     {"", toolOptions{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := optionsInMakefile(test.makefile); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestLeftOut(t *testing.T) {
	const install = "$(CONTROLLER_GEN):\n\t$(call go-install-tool,$(CONTROLLER_GEN),sigs.k8s.io/controller-tools/cmd/controller-gen@v0.11.3)\n"
	for name, test := range map[string]struct {
		makefile string
		want     []string
	}{
		"all":             {"all:\n\t$(CONTROLLER_GEN) rbac:roleName=manager-role crd webhook paths=./...\n" + install, nil},
		"in several":      {"a:\n\tcontroller-gen crd rbac\nb:\n\tcontroller-gen webhook\n", nil},
		"CRDs only":       {"CONTROLLER_GEN = $(shell pwd)/bin/controller-gen\nOPTIONS ?= \"crd:crdVersions=v1\"\nall:\n\t$(CONTROLLER_GEN) $(OPTIONS) paths=\"./...\"\n" + install, []string{genRBAC, genWebhook}},
		"no webhooks":     {"all:\n\tcontroller-gen crd rbac:roleName=$(NAME) output:crd:dir=$(DIR)\n", []string{genWebhook}},
		"only make knows": {"all:\n\tcontroller-gen crd $(MORE)\n", nil},
		"objects only":    {"all:\n\tcontroller-gen object paths=./...\n", nil},
		"nothing":         {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leftOutIn(test.makefile); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// CRDs that the Makefile does not generate, such as those of types that are copied from another operator, are not generated.
func TestPathsOfTheMakefile(t *testing.T) {
	for name, test := range map[string]struct {
		makefile, generator, dir string
		want                     bool
	}{
		"all":                     {"a:\n\tcontroller-gen crd paths=./...\n", genCRD, "pkg/theirs/v1", true},
		"the root":                {"a:\n\tcontroller-gen rbac paths=./...\n", genRBAC, ".", true},
		"inside":                  {"a:\n\t$(CONTROLLER_GEN) crd paths=\"./apis/...\"\n", genCRD, "apis/v1", true},
		"the folder itself":       {"a:\n\tcontroller-gen crd paths=./apis/...\n", genCRD, "apis", true},
		"outside":                 {"a:\n\tcontroller-gen crd paths=./apis/...\n", genCRD, "pkg/theirs/v1", false},
		"a longer name":           {"a:\n\tcontroller-gen crd paths=./api/...\n", genCRD, "apis/v1", false},
		"without folders below":   {"a:\n\tcontroller-gen crd paths=./api\n", genCRD, "api/v1", false},
		"of another generator":    {"a:\n\tcontroller-gen crd paths=./apis/...\n\tcontroller-gen rbac paths=./...\n", genRBAC, "pkg/theirs/v1", true},
		"of two calls":            {"a:\n\tcontroller-gen crd paths=./one\n\tcontroller-gen crd paths=./two\n", genCRD, "two", true},
		"several":                 {"a:\n\tcontroller-gen crd paths=\"./one/...;./two/...\" paths=./three\n", genCRD, "three", true},
		"import paths":            {"a:\n\tcontroller-gen crd paths=example.com/plain/apis/...\n", genCRD, "pkg/theirs", false},
		"one that only make has":  {"a:\n\tcontroller-gen crd paths=./one paths=$(MORE)\n", genCRD, "two", true},
		"another folder":          {"a:\n\tcd api && controller-gen crd paths=./v1/...\n", genCRD, "api/v1", true},
		"variable":                {"P = ./apis/...\na:\n\tcontroller-gen crd paths=$(P)\n", genCRD, "pkg/theirs", false},
		"one call without a path": {"a:\n\tcontroller-gen crd paths=./one\n\tcontroller-gen crd\n", genCRD, "two", true},
		"none":                    {"", genCRD, "two", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := plain().with("Makefile", test.makefile).write(t)
			m := module{dir: dir, path: "example.com/plain"}
			config, err := loadConfig(m, Options{})
			if err != nil {
				t.Fatal(err)
			}
			found := &discovery{packages: []apiPackage{{dir: test.dir, markers: markerKubebuilder | markerGroupName | markerRBAC}}}
			plan, err := newPlan(m, config, found, Options{Only: []string{test.generator}})
			if got := err == nil && len(plan.crd)+len(plan.rbac) > 0; got != test.want {
				t.Errorf("it is generated for %s: %v, %v", test.dir, got, err)
			}
		})
	}
}

func TestMakefileBelowTheConfiguration(t *testing.T) {
	const makefile = "all:\n\tcontroller-gen crd:maxDescLen=0,allowDangerousTypes=true rbac:roleName=ours webhook object:headerFile=gone.txt \\\n" +
		"\t  output:crd:dir=crds output:rbac:dir=../elsewhere output:webhook:dir=$(HOOKS)\n"
	for name, test := range map[string]struct {
		config string
		want   string
	}{
		"alone":                {"", "0 true crds config/rbac ours config/webhook"},
		"with a configuration": {"generate: {crd: {maxDescLen: 9, dir: definitions}, rbac: {roleName: theirs}}", "9 true definitions config/rbac theirs config/webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := plain().with("Makefile", makefile).with(ConfigFileName, test.config).write(t)
			config, err := loadConfig(module{dir: dir, path: "example.com/plain"}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join([]string{
				strconv.Itoa(*config.CRD.MaxDescLen), strconv.FormatBool(*config.CRD.AllowDangerousTypes), config.CRD.Dir,
				config.RBAC.Dir, config.RBAC.RoleName, config.Webhook.Dir,
			}, " ")
			if got != test.want || config.HeaderFile != "" {
				t.Errorf("got %s and header %q, want %s", got, config.HeaderFile, test.want)
			}
		})
	}
}

// A deep copy has the header that make generate gives it, or none.
func TestHeadersOfTheMakefile(t *testing.T) {
	for name, test := range map[string]struct {
		makefile, config              string
		deepcopy, goFiles, yaml, year string
	}{
		"no Makefile":        {"", "", "hack/boilerplate.go.txt", "hack/boilerplate.go.txt", "", ""},
		"none":               {"a:\n\tcontroller-gen object paths=./...\n", "", "", "hack/boilerplate.go.txt", "", ""},
		"none, but the user": {"a:\n\tcontroller-gen object paths=./...\n", "generate: {headerFile: own.txt}", "own.txt", "own.txt", "", ""},
		"its own":            {"a:\n\tcontroller-gen object:headerFile=own.txt,year=2020 crd:headerFile=own.yaml\n", "", "own.txt", "own.txt", "own.yaml", "2020"},
		"other generators":   {"a:\n\tcontroller-gen crd\n", "", "hack/boilerplate.go.txt", "hack/boilerplate.go.txt", "", ""},
		"calls disagree":     {"a:\n\tcontroller-gen object\n\tcontroller-gen object:headerFile=own.txt\n", "", "hack/boilerplate.go.txt", "hack/boilerplate.go.txt", "", ""},
		"only make knows":    {"a:\n\tcontroller-gen object:headerFile=$(HEADER)\n", "", "hack/boilerplate.go.txt", "hack/boilerplate.go.txt", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := plain().with("Makefile", test.makefile).with(ConfigFileName, test.config).
				with("hack/boilerplate.go.txt", "// YEAR\n").with("own.txt", "// own\n").with("own.yaml", "# own\n").write(t)
			config, err := loadConfig(module{dir: dir, path: "example.com/plain"}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			got := [...]string{config.deepcopyHeader(), config.HeaderFile, config.YAMLHeaderFile, config.Year}
			if want := [...]string{test.deepcopy, test.goFiles, test.yaml, test.year}; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
