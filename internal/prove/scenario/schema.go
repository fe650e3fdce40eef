// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opdock/opdock/internal/prove/values"
)

// FromSchema makes a scenario from the schema of a CRD, for a project without samples: it creates an object with the
// fields that the schema requires, changes it and deletes it. Both the object and its change satisfy the schema and its
// rules. The file is the same scenario, for its reader to complete: a schema does not tell what a value means.
func FromSchema(crd *unstructured.Unstructured) (*Scenario, []byte, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &definition); err != nil {
		return nil, nil, fmt.Errorf("reading CRD %s: %w", crd.GetName(), err)
	}
	kind, group := definition.Spec.Names.Kind, definition.Spec.Group
	if kind == "" || group == "" {
		return nil, nil, fmt.Errorf("%s %q is not a CRD with a group and a kind", crd.GetKind(), crd.GetName())
	}
	version := storedVersion(definition.Spec.Versions)
	if version == nil {
		return nil, nil, fmt.Errorf("CRD %s serves no version with a schema", crd.GetName())
	}
	schema := version.Schema.OpenAPIV3Schema
	fields, err := values.Sample(schema, group+"/"+version.Name, kind, strings.ToLower(kind)+"-sample")
	if err != nil {
		return nil, nil, err
	}
	countable(schema, fields)
	s := Default([]*unstructured.Unstructured{{Object: fields}})
	s.Steps[0].Name, s.Steps[1].Name, s.Steps[2].Name = "create", "change", "delete"
	patch := &s.Steps[1].Patch[0]
	patch.Merge, patch.Fallbacks = firstValid(schema, fields, patch), nil
	text, err := s.YAML()
	if err != nil {
		return nil, nil, fmt.Errorf("writing the scenario: %w", err)
	}
	comment := fmt.Sprintf("# A scenario for %s, made from the schema of its CRD. Change the values to ones that make sense.\n", kind)
	text = append([]byte(comment), text...)
	// What is run is what the file says, to the type of each number.
	if s, err = Parse("", text, nil); err != nil {
		return nil, nil, fmt.Errorf("reading the scenario that was made for %s: %w", kind, err)
	}
	return s, text, nil
}

// storedVersion returns the version that is stored, if it is served, else the first that is.
func storedVersion(versions []apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinitionVersion {
	served := slices.DeleteFunc(slices.Clone(versions), func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !v.Served || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil
	})
	if at := slices.IndexFunc(served, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage }); at >= 0 {
		return &served[at]
	}
	if len(served) == 0 {
		return nil
	}
	return &served[0]
}

// countable adds replicas, size or count to a spec that may have it and more of it: an operator that can scale has more
// to show.
func countable(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	if spec == nil {
		return
	}
	for _, name := range counts {
		property, found := schema.Properties["spec"].Properties[name]
		if _, there := spec[name]; there || !found || property.Type != "integer" {
			continue
		}
		value := int64(1)
		if property.Minimum != nil {
			value = max(value, int64(*property.Minimum))
		}
		spec[name] = value + 1
		more := values.Check(schema, object)
		spec[name] = value
		if more == nil && values.Check(schema, object) == nil {
			return
		}
		delete(spec, name)
	}
}

// firstValid returns the first change of a patch that the schema allows.
func firstValid(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, patch *Patch) map[string]any {
	for _, candidate := range append([]map[string]any{patch.Merge}, patch.Fallbacks...) {
		changed := runtime.DeepCopyJSON(object)
		merge(changed, candidate)
		if values.Check(schema, changed) == nil {
			return candidate
		}
	}
	return patch.Fallbacks[len(patch.Fallbacks)-1] // the annotation, which no schema limits
}

// merge applies a merge patch that removes nothing.
func merge(into, patch map[string]any) {
	for name, value := range patch {
		fields, ok := value.(map[string]any)
		there, both := into[name].(map[string]any)
		if ok && both {
			merge(there, fields)
			continue
		}
		into[name] = runtime.DeepCopyJSONValue(value)
	}
}
