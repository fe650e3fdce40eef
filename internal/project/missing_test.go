// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/opdock/opdock/internal/hint"
)

// projectWithoutManager has an overlay that refers to a folder without a kustomization.
func projectWithoutManager(more map[string]string) map[string]string {
	files := map[string]string{
		"go.mod":                            "module example.com/a\n",
		"config/default/kustomization.yaml": "namespace: a-system\nresources: [../base]\n",
		"config/base/kustomization.yaml":    "resources: [../manager]\n",
		"config/manager/README.md":          "Here is the manager.\n",
	}
	maps.Copy(files, more)
	return files
}

const preparing = `.PHONY: prepare
prepare: kustomize
	cd config/manager && \
	cp kustomization_base.yaml kustomization.yaml && \
	$(KUSTOMIZE) edit set image a=${IMG}

clean:
	rm -f config/manager/kustomization.yaml
`

// A Makefile may write the kustomization of a folder, so it is not in git. The manifests of the folder are enough.
func TestFolderWithoutAKustomization(t *testing.T) {
	files := projectWithoutManager(map[string]string{
		"Makefile":                               preparing,
		"config/manager/kustomization_base.yaml": "generatorOptions: {disableNameSuffixHash: true}\n",
		"config/manager/manager.yaml":            "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}\n",
		"config/manager/settings.yaml":           "{apiVersion: example.com/v1, kind: Settings}\n",
		"config/manager/zone.yaml":               "{apiVersion: v1, kind: ConfigMap, metadata: {name: zone}}\n",
	})
	p := write(t, files)
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	objects, err := p.Manifests(t.Context())
	if err != nil || names(objects) != "ConfigMap a-system/zone, ServiceAccount a-system/a" && names(objects) != "ServiceAccount a-system/a, ConfigMap a-system/zone" {
		t.Errorf("the manifests are %s, %v", names(objects), err)
	}
	want := []string{"config/manager/kustomization.yaml does not exist; using manager.yaml, zone.yaml in its place. The Makefile writes it: make prepare"}
	if !slices.Equal(warnings, want) {
		t.Errorf("it says %q", warnings)
	}
	if p.isFile("config/manager/kustomization.yaml") {
		t.Error("the project was changed")
	}
}

func TestMissingFiles(t *testing.T) {
	const create = "create it, or write it with opdock generate if it is generated"
	for name, test := range map[string]struct {
		files         map[string]string
		message, hint string
	}{
		"no manifests": {
			nil, "building config/default: config/manager/kustomization.yaml does not exist, and config/base/kustomization.yaml refers to it", create,
		},
		"the Makefile writes the kustomization": {
			map[string]string{"Makefile": preparing},
			"building config/default: config/manager/kustomization.yaml does not exist, and config/base/kustomization.yaml refers to it", "the Makefile writes it: make prepare",
		},
		"patch": {
			map[string]string{
				"config/manager/kustomization.yaml": "resources: [a.yaml]\npatches: [path: image.yaml]\n",
				"config/manager/a.yaml":             "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}\n",
				"Makefile":                          "image:\n\t@sed s/x/y/ image.in > ./config/manager/image.yaml\n",
			},
			"building config/default: config/manager/image.yaml does not exist, and config/manager/kustomization.yaml refers to it", "the Makefile writes it: make image",
		},
		"file of a generator": {
			map[string]string{
				"config/manager/kustomization.yaml": "configMapGenerator: [{name: a, files: [key=settings.txt]}]\n",
				"Makefile":                          "config/manager/settings.txt: settings.in\n\t./hack/settings\n",
			},
			"building config/default: config/manager/settings.txt does not exist, and config/manager/kustomization.yaml refers to it", "the Makefile writes it: make config/manager/settings.txt",
		},
		"object of a patch": {
			map[string]string{
				"config/manager/kustomization.yaml": "resources: [a.yaml]\npatchesStrategicMerge: [b.yaml]\n",
				"config/manager/a.yaml":             "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n",
				"config/manager/b.yaml":             "# a proxy\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: default}}\n",
			},
			"building config/default: config/manager/b.yaml:3 patches Deployment manager in namespace default, which is not one of the resources",
			"correct the patch, or remove it from config/manager/kustomization.yaml; kustomize build fails as well",
		},
		"object of a patch without a namespace": {
			map[string]string{
				"config/manager/kustomization.yaml": "resources: [a.yaml]\npatches: [path: b.yaml]\n",
				"config/manager/a.yaml":             "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n",
				"config/manager/b.yaml":             "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.b.io}}\n",
			},
			"building config/default: config/manager/b.yaml:1 patches CustomResourceDefinition as.b.io, which is not one of the resources",
			"correct the patch, or remove it from config/manager/kustomization.yaml; kustomize build fails as well",
		},
		"folder": {
			map[string]string{"config/base/kustomization.yaml": "resources: [../absent]\n", "Makefile": "x:\n\techo config/absent\n"},
			"building config/default: config/absent does not exist, and config/base/kustomization.yaml refers to it", create,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := write(t, projectWithoutManager(test.files)).Manifests(t.Context())
			var hinted *hint.Error
			if !errors.As(err, &hinted) || err.Error() != test.message || !slices.Equal(hinted.Hints, []string{test.hint}) {
				t.Errorf("the error is %v, %+v", err, hinted)
			}
		})
	}
}
