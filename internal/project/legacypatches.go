// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// patchesOf are the paths of the files that a kustomization uses as patches, as far as it can be read.
func patchesOf(kustomization string) (paths []string) {
	content, err := os.ReadFile(kustomization)
	if err != nil {
		return nil
	}
	var fields map[string]any
	if yaml.Unmarshal(content, &fields) != nil {
		return nil
	}
	for _, field := range []string{"patches", "patchesStrategicMerge", "patchesJson6902"} {
		list, _ := fields[field].([]any)
		for _, one := range list {
			name, _ := one.(string)
			if entry, isEntry := one.(map[string]any); isEntry {
				name, _ = entry["path"].(string)
			}
			if name != "" {
				paths = append(paths, filepath.Join(filepath.Dir(kustomization), filepath.FromSlash(name)))
			}
		}
	}
	return paths
}

// legacyPatches reads kustomizations in which patches are names of files. Kustomize before version 5 accepted that, and projects of
// that time have it.
type legacyPatches struct {
	filesys.FileSystem
	// found is called with the path of each such kustomization.
	found func(path string)
}

// ReadFile returns the content of a file, in the form that the kustomize of today reads.
func (f legacyPatches) ReadFile(path string) ([]byte, error) {
	content, err := f.FileSystem.ReadFile(path)
	if err != nil || !isKustomization(filepath.Base(path)) {
		return content, err
	}
	var fields map[string]any
	if yaml.Unmarshal(content, &fields) != nil {
		return content, nil //nolint:nilerr // kustomize says what is wrong with it
	}
	patches, isList := fields["patches"].([]any)
	if !isList {
		return content, nil
	}
	legacy := false
	for i, one := range patches {
		if name, isName := one.(string); isName {
			patches[i] = map[string]any{"path": name}
			legacy = true
		}
	}
	if !legacy {
		return content, nil
	}
	f.found(path)
	if content, err = yaml.Marshal(fields); err != nil {
		return nil, fmt.Errorf("writing the patches of %s in their new form: %w", path, err)
	}
	return content, nil
}
