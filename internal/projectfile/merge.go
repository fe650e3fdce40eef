// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectfile

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// merge brings the document up to date with the fields and leaves the rest of it alone.
func (f *File) merge() error {
	root := f.document.Content[0]
	if err := mergeStruct(root, *f, "resources"); err != nil {
		return err
	}
	if len(f.Resources) == 0 {
		removeKey(root, "resources")
		return nil
	}
	list := valueOf(root, "resources")
	if list == nil || list.Kind != yaml.SequenceNode {
		list = &yaml.Node{Kind: yaml.SequenceNode}
		setKey(root, "resources", list)
	}
	list.Style = 0 // not [], which an empty list could have been
	list.Content = nil
	for i := range f.Resources {
		resource := &f.Resources[i]
		if resource.node == nil {
			resource.node = &yaml.Node{Kind: yaml.MappingNode}
		}
		if err := mergeStruct(resource.node, *resource); err != nil {
			return err
		}
		list.Content = append(list.Content, resource.node)
	}
	return nil
}

// mergeStruct makes the keys that the struct's fields are called after say what the fields say.
func mergeStruct(have *yaml.Node, value any, except ...string) error {
	var want yaml.Node
	if err := want.Encode(value); err != nil {
		return err
	}
	mergeMapping(have, &want, reflect.TypeOf(value), except)
	return nil
}

func mergeMapping(have, want *yaml.Node, of reflect.Type, except []string) {
	for i := range of.NumField() {
		field := of.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || slices.Contains(except, key) {
			continue
		}
		old, updated := valueOf(have, key), valueOf(want, key)
		switch inner := structBehind(field.Type); {
		case updated == nil && old != nil && !says(old, field.Type):
			// It says the same as if it were not there.
		case updated == nil:
			removeKey(have, key)
		case old == nil:
			setKey(have, key, updated)
		case inner != nil && old.Kind == yaml.MappingNode:
			mergeMapping(old, updated, inner, nil)
		case !same(old, updated, field.Type):
			replace(old, updated)
		}
	}
}

func structBehind(of reflect.Type) reflect.Type {
	if of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct {
		return of.Elem()
	}
	return nil
}

// says reports whether a node has a value that a field of the type would not have by itself.
func says(node *yaml.Node, of reflect.Type) bool {
	value := reflect.New(of)
	return node.Decode(value.Interface()) != nil || !value.Elem().IsZero()
}

func same(a, b *yaml.Node, of reflect.Type) bool {
	left, right := reflect.New(of), reflect.New(of)
	return a.Decode(left.Interface()) == nil && b.Decode(right.Interface()) == nil &&
		reflect.DeepEqual(left.Interface(), right.Interface())
}

// replace changes a value and keeps the comments around it.
func replace(old, updated *yaml.Node) {
	old.Kind, old.Style, old.Tag, old.Value, old.Content = updated.Kind, updated.Style, updated.Tag, updated.Value, updated.Content
}

func indexOf(mapping *yaml.Node, key string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return i
		}
	}
	return -1
}

func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	if i := indexOf(mapping, key); i >= 0 {
		return mapping.Content[i+1]
	}
	return nil
}

func removeKey(mapping *yaml.Node, key string) {
	if i := indexOf(mapping, key); i >= 0 {
		mapping.Content = slices.Delete(mapping.Content, i, i+2)
	}
}

// setKey puts a new key where it belongs in alphabetical order, which is the order in which kubebuilder writes them.
func setKey(mapping *yaml.Node, key string, value *yaml.Node) {
	if i := indexOf(mapping, key); i >= 0 {
		mapping.Content[i+1] = value
		return
	}
	at := 0
	for at < len(mapping.Content) && mapping.Content[at].Value < key {
		at += 2
	}
	mapping.Content = slices.Insert(mapping.Content, at, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, value)
}
