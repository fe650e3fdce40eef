// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/gocommand"
)

// ExternalCRDs are the definitions of kinds that PROJECT says come from other modules, as far as those modules bring them.
// The operator does not start without them, and its own manifests do not have them.
func (p *Project) ExternalCRDs(ctx context.Context, env []string) []*unstructured.Unstructured {
	if p.File == nil {
		return nil
	}
	wanted := map[string][]schema.GroupKind{} // by import path of the types
	for i := range p.File.Resources {
		if one := &p.File.Resources[i]; one.External && one.Path != "" {
			wanted[one.Path] = append(wanted[one.Path], schema.GroupKind{Group: one.QualifiedGroup(), Kind: one.Kind})
		}
	}
	var definitions []*unstructured.Unstructured
	for _, path := range slices.Sorted(maps.Keys(wanted)) {
		if dir := p.moduleOf(ctx, path, env); dir != "" {
			definitions = append(definitions, definitionsIn(dir, wanted[path])...)
		}
	}
	return definitions
}

// moduleOf is the folder of the module that a package comes from. It is empty if go does not know; the build says why.
func (p *Project) moduleOf(ctx context.Context, importPath string, env []string) string {
	output, err := gocommand.Command(ctx, p.Dir, env, "list", "-find", "-f", "{{with .Module}}{{.Dir}}{{end}}", importPath).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}

// definitionsIn looks through the usual folders of a module.
func definitionsIn(dir string, wanted []schema.GroupKind) []*unstructured.Unstructured {
	module := &Project{Dir: dir}
	best := map[schema.GroupKind]found{}
	all := definitionsBelow(module, module.existing(usualFolders...), func(definition *unstructured.Unstructured) bool {
		return slices.Contains(wanted, crdspec.Of(definition).GroupKind())
	})
	for _, one := range all {
		kind := crdspec.Of(one.Unstructured).GroupKind()
		if known, again := best[kind]; !again || capability(one) > capability(known) {
			best[kind] = one
		}
	}
	var definitions []*unstructured.Unstructured
	for _, kind := range wanted {
		if one, known := best[kind]; known {
			definitions = append(definitions, withoutInstallation(one.Unstructured))
		}
	}
	return definitions
}

// withoutInstallation is a definition without labels and annotations: they are about how it is installed, and may even be
// templates.
func withoutInstallation(definition *unstructured.Unstructured) *unstructured.Unstructured {
	definition.SetLabels(nil)
	definition.SetAnnotations(nil)
	return definition
}

// definitionsBelow looks for definitions in YAML files. What cannot be read there is no definition for a server.
func definitionsBelow(p *Project, folders []string, wanted func(*unstructured.Unstructured) bool) (all []found) {
	for _, folder := range folders {
		_ = filepath.WalkDir(p.path(folder), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // it is looked at as far as that is possible
			case entry.IsDir() && path != p.path(folder) && p.holdsNoManifests(path, entry.Name()):
				return filepath.SkipDir
			case entry.IsDir() || !isYAML(entry.Name()):
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(content, []byte(definitionKind)) {
				return nil //nolint:nilerr // as above
			}
			objects, err := p.readFile(path)
			if err != nil {
				return nil //nolint:nilerr // a template
			}
			for _, one := range objects {
				if IsCRD(one.Unstructured) && capability(one) > 0 && wanted(one.Unstructured) {
					all = append(all, one)
				}
			}
			return nil
		})
	}
	return all
}
