// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// found is an object and where it was.
type found struct {
	*unstructured.Unstructured
	file string // relative to the project's folder
	line int    // of its first line that is no comment
}

// readFolders returns the objects in all YAML files of the folders and of those below, in the order of their paths.
func (p *Project) readFolders(folders ...string) ([]found, error) {
	var all []found
	for _, folder := range folders {
		files, err := p.manifestsBelow(folder)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := p.readFile(file)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

// manifestsBelow are the YAML files of a folder and of those below, in the order of their paths. Files that a kustomization there uses
// as patches are left out: they look like objects, and are only a part of one.
func (p *Project) manifestsBelow(folder string) (files []string, err error) {
	patches := map[string]bool{}
	err = filepath.WalkDir(p.path(folder), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && p.holdsNoManifests(path, entry.Name()):
			return filepath.SkipDir
		case !entry.IsDir() && isKustomization(entry.Name()):
			for _, one := range patchesOf(path) {
				patches[one] = true
			}
		case !entry.IsDir() && isYAML(entry.Name()):
			files = append(files, path)
		}
		return nil
	})
	return slices.DeleteFunc(files, func(path string) bool { return patches[path] }), err
}

// readExamples is readFolders for folders of examples. They are written for people, and some are for other tools: a file that cannot
// be read is named and left out.
func (p *Project) readExamples(folders ...string) (all []found, err error) {
	for _, folder := range folders {
		files, err := p.manifestsBelow(folder)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := p.readFile(file)
			if err != nil {
				p.warn("%v; the file is left out of the samples", err)
				continue
			}
			all = append(all, objects...)
		}
	}
	return all, nil
}

// holdsNoManifests is true for folders whose YAML is not meant for a server as it is: templates, and copies of manifests
// for catalogs.
func (p *Project) holdsNoManifests(path, name string) bool {
	switch name {
	case "olm-catalog", "bundle", "templates", "patches", "scorecard":
		return true
	}
	return leftOut(name) || path != p.Dir && isNestedModule(path)
}

func isYAML(name string) bool {
	extension := filepath.Ext(name)
	return extension == ".yaml" || extension == ".yml"
}

func isKustomization(name string) bool {
	return name == "kustomization.yaml" || name == "kustomization.yml" || name == "Kustomization" || name == "kustomizeconfig.yaml"
}

// templateLine is a line that consists of an action of a template. The text of a CRD may also contain braces.
var templateLine = regexp.MustCompile(`(?m)^\s*\{\{.*\}\}\s*$`)

// readFile returns the objects in a file. Documents that are no objects of Kubernetes are left out, as are templates.
func (p *Project) readFile(path string) ([]found, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(content, []byte("{{")) && !bytes.Contains(content, []byte("CustomResourceDefinition")) {
		return nil, nil
	}
	var objects []found
	for _, document := range splitDocuments(content) {
		var value any
		if err := yaml.Unmarshal(document.content, &value); err != nil {
			err = yamlError(p.relative(path), document.line, err)
			if templateLine.Match(content) {
				p.warn("%v; it looks like a template of Helm, and is left out", err)
				return nil, nil
			}
			return nil, err
		}
		fields, isMap := value.(map[string]any)
		if !isMap {
			continue // such as a JSON patch of a kustomization, which is a list
		}
		object := &unstructured.Unstructured{Object: fields}
		if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetKind() == "Kustomization" {
			continue
		}
		// Numbers as package unstructured has them, which copies nothing else.
		encoded, err := object.MarshalJSON()
		if err == nil {
			err = object.UnmarshalJSON(encoded)
		}
		if err != nil {
			return nil, &FileError{File: p.relative(path), Line: document.firstLine(), Err: err}
		}
		if object.IsList() {
			list, err := object.ToList()
			if err != nil {
				return nil, &FileError{File: p.relative(path), Line: document.firstLine(), Err: err}
			}
			for i := range list.Items {
				objects = append(objects, found{&list.Items[i], p.relative(path), document.firstLine()})
			}
			continue
		}
		objects = append(objects, found{object, p.relative(path), document.firstLine()})
	}
	return objects, nil
}

// document is a part of a YAML file.
type document struct {
	content []byte
	line    int // how many lines are before it
}

// splitDocuments splits at lines that begin with three dashes, which is where documents end in manifests.
func splitDocuments(content []byte) []document {
	var (
		all     []document
		current document
	)
	line := 0
	for text := range bytes.Lines(content) {
		line++
		if rest, separator := bytes.CutPrefix(text, []byte("---")); separator && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t') {
			all = append(all, current)
			current = document{line: line}
			if rest = bytes.TrimSpace(rest); len(rest) > 0 && rest[0] != '#' {
				current = document{content: append(rest, '\n'), line: line - 1}
			}
			continue
		}
		current.content = append(current.content, text...)
	}
	return append(all, current)
}

// firstLine returns the number of the first line that is neither empty nor a comment.
func (d document) firstLine() int {
	line := d.line
	for text := range bytes.Lines(d.content) {
		line++
		if text = bytes.TrimSpace(text); len(text) > 0 && text[0] != '#' {
			return line
		}
	}
	return d.line + 1
}

var yamlLine = regexp.MustCompile(`\bline (\d+): ?`)

// yamlError is an error of the YAML decoder with the line in the file instead of that in the document.
func yamlError(file string, before int, err error) error {
	message := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: "} {
		message = strings.TrimPrefix(message, prefix)
	}
	at := yamlLine.FindStringSubmatchIndex(message)
	if at == nil {
		return &FileError{File: file, Line: before + 1, Err: errors.New(message)}
	}
	line, _ := strconv.Atoi(message[at[2]:at[3]]) // digits, by the expression
	message = strings.TrimSpace(message[:at[0]] + message[at[1]:])
	return &FileError{File: file, Line: before + line, Err: errors.New(message)}
}
