// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// projectFileName is where kubebuilder and operator-sdk keep what they know of a project.
const projectFileName = "PROJECT"

// projectFile is what is needed of a PROJECT file here, of all versions of it that there have been.
type projectFile struct {
	ProjectName string `json:"projectName"`
	// Layout is one text in older versions and several since.
	Layout  any            `json:"layout"`
	Plugins map[string]any `json:"plugins"`

	present bool
}

func readProjectFile(dir string) (projectFile, error) {
	content, err := os.ReadFile(filepath.Join(dir, projectFileName))
	if errors.Is(err, os.ErrNotExist) {
		return projectFile{}, nil
	}
	if err != nil {
		return projectFile{}, err
	}
	file := projectFile{present: true}
	if err := yaml.Unmarshal(content, &file); err != nil {
		return projectFile{}, yamlError(projectFileName, 0, err)
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

func (f projectFile) hasLayout(name string) bool { return slices.Contains(f.layouts(), name) }

// plugins are all that have had a hand in the project.
func (f projectFile) plugins() []string {
	all := f.layouts()
	for name := range f.Plugins {
		all = append(all, name)
	}
	return all
}
