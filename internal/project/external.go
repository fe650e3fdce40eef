// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	list := exec.CommandContext(ctx, "go", "list", "-find", "-f", "{{with .Module}}{{.Dir}}{{end}}", importPath)
	list.Dir, list.Env = p.Dir, env
	output, err := list.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(output))
}

// definitionsIn looks through the usual folders of a module. What cannot be read there is no definition for a server.
func definitionsIn(dir string, wanted []schema.GroupKind) []*unstructured.Unstructured {
	module := &Project{Dir: dir}
	best := map[schema.GroupKind]found{}
	for _, folder := range module.existing(usualFolders...) {
		_ = filepath.WalkDir(module.path(folder), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // it is looked at as far as that is possible
			case entry.IsDir() && module.holdsNoManifests(path, entry.Name()):
				return filepath.SkipDir
			case entry.IsDir() || !isYAML(entry.Name()):
				return nil
			}
			content, err := os.ReadFile(path)
			if err != nil || !bytes.Contains(content, []byte(definitionKind)) {
				return nil //nolint:nilerr // as above
			}
			objects, err := module.readFile(path)
			if err != nil {
				return nil //nolint:nilerr // a template
			}
			for _, one := range objects {
				kind := GroupKindOf(one.Unstructured)
				if !IsCRD(one.Unstructured) || !slices.Contains(wanted, kind) {
					continue
				}
				if known, again := best[kind]; capability(one) > 0 && (!again || capability(one) > capability(known)) {
					best[kind] = one
				}
			}
			return nil
		})
	}
	var definitions []*unstructured.Unstructured
	for _, kind := range wanted {
		if one, known := best[kind]; known {
			// Labels and annotations are about how it is installed, and may even be templates.
			one.SetLabels(nil)
			one.SetAnnotations(nil)
			definitions = append(definitions, one.Unstructured)
		}
	}
	return definitions
}
