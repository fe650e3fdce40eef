// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Place is a line of one of the project's files.
type Place struct {
	// File is relative to the project's folder, with slashes.
	File string
	Line int
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// SamplePlace finds where a field of a sample is written, such as spec.ports[0].name. If the field is not there, it is the
// last one on the way to it that is, and without a field the place where the sample begins. A kustomization may have changed
// the name of a sample, which is then found only if there is no other of its kind.
func (p *Project) SamplePlace(sample *unstructured.Unstructured, field string) (place Place, ok bool) {
	folders := p.existing("config/samples")
	if len(folders) == 0 {
		folders = p.existing(sampleFolders()...)
	}
	all, err := p.readFolders(folders...)
	if err != nil {
		return Place{}, false
	}
	all = slices.DeleteFunc(all, func(one found) bool { return one.GroupVersionKind() != sample.GroupVersionKind() })
	at := slices.IndexFunc(all, func(one found) bool { return one.GetName() == sample.GetName() })
	switch {
	case at >= 0:
		return p.placeIn(all[at], field), true
	case len(all) == 1:
		return p.placeIn(all[0], field), true
	default:
		return Place{}, false
	}
}

// placeIn looks for a field in the file of an object.
func (p *Project) placeIn(object found, field string) Place {
	place := Place{File: object.file, Line: object.line}
	content, err := os.ReadFile(p.path(object.file))
	if err != nil {
		return place
	}
	for _, document := range splitDocuments(content) {
		if document.firstLine() != object.line {
			continue
		}
		node := yaml.Node{}
		if yaml.Unmarshal(document.content, &node) != nil || len(node.Content) == 0 {
			continue
		}
		if line := lineOf(node.Content[0], field); line > 0 {
			place.Line = document.line + line
		}
	}
	return place
}

// fieldPart is a name, or what is in brackets, of a path to a field.
var fieldPart = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// lineOf follows a path as far as it leads; it is 0 if that is nowhere.
func lineOf(node *yaml.Node, field string) (line int) {
	for _, part := range fieldPart.FindAllString(field, -1) {
		key, value := step(node, strings.Trim(part, "[]"))
		if key == nil {
			break
		}
		line, node = key.Line, value
	}
	return line
}

// step goes to a member of a mapping, or to an item of a sequence: the one with a number, or the one whose member has a
// value, as in name="web".
func step(node *yaml.Node, part string) (key, value *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == part {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if number, err := strconv.Atoi(part); err == nil && number >= 0 && number < len(node.Content) {
			return node.Content[number], node.Content[number]
		}
		name, wanted, _ := strings.Cut(part, "=")
		for _, item := range node.Content {
			if _, value := step(item, name); value != nil && item.Kind == yaml.MappingNode && value.Value == strings.Trim(wanted, `"`) {
				return item, item
			}
		}
	}
	return nil, nil
}
