// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

const starterFolder = "starters"

// Starter is a kind to begin with.
type Starter struct {
	Name        string `json:"-"`
	Description string `json:"description"`
	// Scope is Namespaced if the kind must be namespaced.
	Scope string `json:"scope,omitempty"`
	// Requires maps paths of additional files in the project to their templates.
	Requires map[string]string `json:"requires,omitempty"`
}

// Starters lists the starters, sorted by name.
func Starters() ([]Starter, error) {
	names, err := fs.Glob(templates, starterFolder+"/*/starter.yaml")
	if err != nil {
		return nil, err
	}
	all := make([]Starter, 0, len(names))
	for _, name := range names {
		starter := Starter{Name: path.Base(path.Dir(name))}
		content, err := fs.ReadFile(templates, name)
		if err != nil {
			return nil, err
		}
		if err := yaml.UnmarshalStrict(content, &starter); err != nil {
			return nil, fmt.Errorf("reading the starter %s: %w", starter.Name, err)
		}
		all = append(all, starter)
	}
	return all, nil
}

// shape is the set of templates of a kind.
type shape struct {
	types       string
	sample      string
	controllers map[string]string // templates, and what follows the name of the kind in the name of the file
	requires    map[string]string // as in Starter, with whole names of templates

	clusterScopeIsWrong bool
	// twin means that types and sample are copies of another version's, if they can be.
	twin bool
}

var (
	exampleShape = shape{
		types: "api/types.go.tmpl", sample: "api/sample.yaml.tmpl",
		controllers: map[string]string{
			"api/controller.go.tmpl":             "controller.go",
			"api/controller_test.go.tmpl":        "controller_test.go",
			"api/controller_server_test.go.tmpl": "controller_server_test.go",
		},
	}
	emptyShape = shape{
		types: "api/empty_types.go.tmpl", sample: "api/empty_sample.yaml.tmpl",
		controllers: map[string]string{
			"api/empty_controller.go.tmpl":      "controller.go",
			"api/empty_controller_test.go.tmpl": "controller_test.go",
		},
	}
)

func (o *APIOptions) shape() (shape, error) {
	switch {
	case o.Empty:
		return emptyShape, nil
	case o.From == "":
		return exampleShape, nil
	}
	starters, err := Starters()
	if err != nil {
		return shape{}, err
	}
	names := make([]string, 0, len(starters))
	for _, one := range starters {
		if one.Name == o.From {
			return one.shape()
		}
		names = append(names, one.Name)
	}
	return shape{}, wrongInput("starter %q does not exist", o.From).hint("starters: %s", strings.Join(names, ", "))
}

func (s Starter) shape() (shape, error) {
	folder := path.Join(starterFolder, s.Name)
	made := shape{
		types: folder + "/types.go.tmpl", sample: folder + "/sample.yaml.tmpl", controllers: map[string]string{},
		requires: map[string]string{}, clusterScopeIsWrong: s.Scope == "Namespaced",
	}
	for file, template := range s.Requires {
		made.requires[file] = path.Join(starterFolder, template)
	}
	names, err := fs.Glob(templates, folder+"/controller*.go.tmpl")
	if err != nil {
		return made, err
	}
	if len(names) == 0 {
		return made, fmt.Errorf("the starter %s has no controller.go.tmpl", s.Name)
	}
	for _, name := range names {
		// controller.go and controller_test.go keep their names; the others lose the prefix.
		suffix := strings.TrimSuffix(path.Base(name), templateSuffix)
		if suffix != "controller.go" && suffix != "controller_test.go" {
			suffix = strings.TrimPrefix(suffix, "controller_")
		}
		made.controllers[name] = suffix
	}
	return made, nil
}

// addRequired writes the additional files of a starter that do not exist yet.
func (p *project) addRequired(api API, s shape) error {
	for file, template := range s.requires {
		if err := p.writeIfMissing(file, template, view{Project: p.Project, API: api}); err != nil {
			return err
		}
	}
	return nil
}

// allShapes returns all shapes that a kind can have.
func allShapes() ([]shape, error) {
	shapes := []shape{exampleShape, emptyShape, twinShape}
	starters, err := Starters()
	if err != nil {
		return nil, err
	}
	for _, one := range starters {
		made, shapeErr := one.shape()
		err = errors.Join(err, shapeErr)
		shapes = append(shapes, made)
	}
	return shapes, err
}
