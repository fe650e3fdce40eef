// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// listMapKeys is the schema field with the properties that identify the items of a list.
const listMapKeys = "x-kubernetes-list-map-keys"

// withRequiredKeys makes the keys of lists required if they have no default. The API server rejects other CRDs, and
// the user may not be able to change the types: the key of Deployment conditions is marked optional, so a status that
// embeds a Deployment's status would never be accepted. Nothing else in the file changes.
func withRequiredKeys(content []byte) ([]byte, error) {
	if !bytes.Contains(content, []byte(listMapKeys)) {
		return content, nil
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("reading a generated CRD: %w", err)
	}
	inserts := map[int]string{} // by the number of the line before which they belong
	findOptionalKeys(&document, inserts)
	if len(inserts) == 0 {
		return content, nil
	}
	var all strings.Builder
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		all.WriteString(inserts[number])
		all.WriteString(line)
	}
	return []byte(all.String()), nil
}

// findOptionalKeys finds lists in a node and everything below it.
func findOptionalKeys(node *yaml.Node, inserts map[int]string) {
	if _, keys := field(node, listMapKeys); keys != nil && keys.Kind == yaml.SequenceNode {
		if _, items := field(node, "items"); items != nil {
			requireKeys(items, keys, inserts)
		}
	}
	for _, below := range node.Content {
		findOptionalKeys(below, inserts)
	}
}

// requireKeys plans the lines that make keys required in the schema of an item.
func requireKeys(item, keys *yaml.Node, inserts map[int]string) {
	var missing []string
	_, properties := field(item, "properties")
	_, required := field(item, "required")
	for _, key := range keys.Content {
		_, property := field(properties, key.Value)
		if property == nil || slices.Contains(values(required), key.Value) {
			continue
		}
		if _, byDefault := field(property, "default"); byDefault == nil {
			missing = append(missing, key.Value)
		}
	}
	// Fields are sorted, and the schema of a struct has a type, which is the next one.
	next, _ := field(item, "type")
	if len(missing) == 0 || next == nil {
		return
	}
	indent := strings.Repeat(" ", next.Column-1)
	var lines strings.Builder
	if required == nil {
		lines.WriteString(indent + "required:\n")
	}
	for _, key := range missing {
		lines.WriteString(indent + "- " + key + "\n")
	}
	inserts[next.Line] = lines.String()
}

// field returns the name and the value of a field, or nothing.
func field(node *yaml.Node, name string) (key, value *yaml.Node) {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

func values(node *yaml.Node) (all []string) {
	if node == nil {
		return nil
	}
	for _, one := range node.Content {
		all = append(all, one.Value)
	}
	return all
}
