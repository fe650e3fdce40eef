// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/crdspec"
)

// FromSchema makes a scenario from the schema of a CRD, for a project without samples: it creates an object with the
// fields that the schema requires, changes it and deletes it. The file says which values its reader has to check, because
// a schema does not tell what a value means.
func FromSchema(crd *unstructured.Unstructured) (*Scenario, []byte, error) {
	spec := crdspec.Of(crd)
	if spec.Kind == "" || spec.Group == "" {
		return nil, nil, fmt.Errorf("%s %q is not a CRD with a group and a kind", crd.GetKind(), crd.GetName())
	}
	version := storedVersion(spec.Versions)
	if version == nil {
		return nil, nil, fmt.Errorf("CRD %s serves no version", crd.GetName())
	}
	schema, _, _ := unstructured.NestedMap(version.Fields, "schema", "openAPIV3Schema")
	m := &maker{}
	object := &unstructured.Unstructured{Object: m.root(schema)}
	object.SetAPIVersion(spec.Group + "/" + version.Name)
	object.SetKind(spec.Kind)
	object.SetName(strings.ToLower(spec.Kind) + "-sample")

	s := Default([]*unstructured.Unstructured{object})
	s.Steps[0].Name, s.Steps[1].Name, s.Steps[2].Name = "create", "change", "delete"
	patch := &s.Steps[1].Patch[0]
	patch.Merge, patch.Fallbacks = sure(schema, patch), nil
	text, err := s.YAML()
	if err != nil {
		return nil, nil, fmt.Errorf("writing the scenario: %w", err)
	}
	return s, append(m.comment(spec.Kind), text...), nil
}

// storedVersion returns the version that is stored, if it is served, else the first that is.
func storedVersion(versions []crdspec.Version) *crdspec.Version {
	served := slices.DeleteFunc(slices.Clone(versions), func(v crdspec.Version) bool { return !v.Served })
	if at := slices.IndexFunc(served, func(v crdspec.Version) bool { return v.Storage }); at >= 0 {
		return &served[at]
	}
	if len(served) == 0 {
		return nil
	}
	return &served[0]
}

// sure returns the first change of a patch that the schema allows.
func sure(schema map[string]any, patch *Patch) map[string]any {
	for _, candidate := range append([]map[string]any{patch.Merge}, patch.Fallbacks...) {
		if allows(schema, candidate) {
			return candidate
		}
	}
	return patch.Merge
}

// allows reports whether the integers of a merge patch are within the limits of a schema.
func allows(schema map[string]any, value any) bool {
	switch value := value.(type) {
	case map[string]any:
		properties, _, _ := unstructured.NestedMap(schema, "properties")
		for name, one := range value {
			property, _ := properties[name].(map[string]any)
			if !allows(property, one) {
				return false
			}
		}
		return true
	case int64:
		if enum, _ := schema["enum"].([]any); len(enum) > 0 {
			return slices.ContainsFunc(enum, func(one any) bool { n, ok := number(one); return ok && n == float64(value) })
		}
		return within(schema, float64(value))
	default:
		return true
	}
}

func (m *maker) comment(kind string) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "# A scenario for %s, made from the schema of its CRD. Change the values to ones that make sense.\n", kind)
	if len(m.doubtful) > 0 {
		text.WriteString("# The schema does not tell enough about these fields, so the API server may refuse them:\n")
		for _, path := range m.doubtful {
			fmt.Fprintf(&text, "#   %s\n", path)
		}
	}
	return []byte(text.String())
}

// root makes the object. Only spec and other fields of its own are made: metadata and status are not the user's.
func (m *maker) root(schema map[string]any) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	required := m.required(schema)
	object := map[string]any{}
	for _, name := range sortedKeys(properties) {
		property, ok := properties[name].(map[string]any)
		switch {
		case !ok || name == "apiVersion" || name == "kind" || name == "metadata" || name == "status":
		case name == "spec" || slices.Contains(required, name):
			object[name] = m.value(property, name, 0)
		}
	}
	count(properties, object)
	return object
}

// count adds replicas, size or count to a spec, if the schema allows to change it: an operator that can scale has more to
// show.
func count(properties, object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	schema, _ := properties["spec"].(map[string]any)
	fields, _ := schema["properties"].(map[string]any)
	if spec == nil {
		return
	}
	for _, name := range []string{"replicas", "size", "count"} {
		property, _ := fields[name].(map[string]any)
		if property == nil || property["type"] != "integer" {
			continue
		}
		value, there := spec[name].(int64)
		if !there {
			value, _ = (&maker{}).value(property, name, 1).(int64)
		}
		if within(property, float64(value)) && allows(property, value+1) {
			spec[name] = value
			return
		}
	}
}
