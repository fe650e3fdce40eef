// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Command applyschema writes the OpenAPI document of our kinds that applyconfiguration-gen reads.
package main

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/applyschema"
)

const module = "github.com/opdock/opdock"

func main() {
	output := flag.String("output", "", "file to write")
	flag.Parse()
	if err := run(*output); err != nil {
		fmt.Fprintln(os.Stderr, "applyschema:", err)
		os.Exit(1)
	}
}

// run expects to be in the root of the repository.
func run(output string) error {
	crds, err := readCRDs("config/crd/bases/*.yaml")
	if err != nil {
		return err
	}
	packages, err := goPackages("api/*/*/doc.go")
	if err != nil {
		return err
	}
	document, err := applyschema.Document(crds, packages)
	if err != nil {
		return err
	}
	return os.WriteFile(output, append(document, '\n'), 0o600)
}

func readCRDs(pattern string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

var groupName = regexp.MustCompile(`(?m)^// \+groupName=(\S+)$`)

// goPackages finds the packages by the marker that generators go by, and takes their folder's name for the version.
func goPackages(pattern string) (applyschema.GoPackages, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	packages := applyschema.GoPackages{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if match := groupName.FindSubmatch(raw); match != nil {
			folder := filepath.ToSlash(filepath.Dir(file))
			packages[schema.GroupVersion{Group: string(match[1]), Version: path.Base(folder)}] = path.Join(module, folder)
		}
	}
	return packages, nil
}
