// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/projectfile"
)

// projectFile is what is needed of a PROJECT file here, of all versions of it that there have been.
type projectFile struct {
	// Layout is one text in older versions and several since.
	Layout  any            `json:"layout"`
	Plugins map[string]any `json:"plugins"`

	content *projectfile.File // nil if there is no PROJECT
}

func readProjectFile(dir string) (file projectFile, err error) {
	content, err := os.ReadFile(filepath.Join(dir, projectfile.Name))
	if errors.Is(err, os.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return file, err
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return file, yamlError(projectfile.Name, 0, err)
	}
	if file.content, err = projectfile.Parse(content); err != nil {
		return file, yamlError(projectfile.Name, 0, err)
	}
	return file, nil
}

func (f projectFile) layouts() []string {
	switch layout := f.Layout.(type) {
	case string:
		return strings.Split(layout, ",")
	case []any:
		var all []string
		for _, one := range layout {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
		return all
	default:
		return nil
	}
}

// plugins are all that have had a hand in the project.
func (f projectFile) plugins() []string {
	all := f.layouts()
	for name := range f.Plugins {
		all = append(all, name)
	}
	return all
}
