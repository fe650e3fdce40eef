// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opdock/opdock/internal/prove/values"
)

// Suggestion is a scenario for its reader to complete.
type Suggestion struct {
	Scenario *Scenario
	// Text is the file, with a comment that says what it was made of.
	Text []byte
	// Missing are reasons why there is nothing for a kind.
	Missing []error
}

// FromSchemas makes a scenario from the schemas of CRDs, for a project without samples: it creates an object of each kind
// with the fields that the schema requires, changes it, changes it back and deletes it. Objects and changes satisfy the
// schema and its rules. A schema does not tell what a value means, so the reader has to complete it. It fails if there is
// nothing for any kind.
func FromSchemas(crds []*unstructured.Unstructured) (*Suggestion, error) {
	var made Suggestion
	var samples []*unstructured.Unstructured
	var kinds []string
	for _, crd := range crds {
		definition, sample, err := sampleOf(crd)
		if err != nil {
			made.Missing = append(made.Missing, err)
			continue
		}
		samples, kinds = append(samples, sample), append(kinds, definition.Spec.Names.Kind)
	}
	if len(samples) == 0 {
		return nil, errors.Join(made.Missing...)
	}
	comment := fmt.Sprintf("# A scenario for %s, made from the schema of its CRD. Change the values to ones that make sense.\n", kinds[0])
	if len(kinds) > 1 {
		comment = fmt.Sprintf("# A scenario for %s, made from the schemas of their CRDs. Change the values to ones that make sense.\n", strings.Join(kinds, ", "))
	}
	return made.of(comment, samples, crds)
}

// FromSamples makes a scenario that does what is done without one: the samples are created, changed, changed back and deleted.
func FromSamples(samples, crds []*unstructured.Unstructured) (*Suggestion, error) {
	return (&Suggestion{}).of("# A scenario with the samples of the project: what opdock prove runs without a scenario.\n", samples, crds)
}

// of writes a scenario with changes that the schemas allow.
func (m *Suggestion) of(comment string, samples, crds []*unstructured.Unstructured) (*Suggestion, error) {
	s := Default(samples, crds)
	create, change, back := &s.Steps[0], &s.Steps[1], &s.Steps[2]
	create.Name, change.Name, back.Name, s.Steps[3].Name = "create", "change", "change back", "delete"
	back.Optional = false
	for i := range change.Patch {
		patch, object := &change.Patch[i], create.Apply.Objects[i]
		if schema := schemaFor(object, crds); schema != nil {
			patch.Merge = firstValid(schema, object.Object, patch)
		}
		back.Patch[i].Merge = inverse(object, patch.Merge)
		patch.Fallbacks, back.Patch[i].Fallbacks = nil, nil // a file has none
	}
	text, err := s.YAML()
	if err != nil {
		return nil, fmt.Errorf("writing the scenario: %w", err)
	}
	m.Text = append([]byte(comment), text...)
	// What is run is what the file says, to the type of each number.
	if m.Scenario, err = Parse("", m.Text, nil); err != nil {
		return nil, fmt.Errorf("reading the scenario that was made: %w", err)
	}
	return m, nil
}

// sampleOf makes an object from the schema of its CRD.
func sampleOf(crd *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, *unstructured.Unstructured, error) {
	definition, err := definitionOf(crd)
	if err != nil {
		return nil, nil, err
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
	return definition, &unstructured.Unstructured{Object: fields}, nil
}

func definitionOf(crd *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &definition); err != nil {
		return nil, fmt.Errorf("reading CRD %s: %w", crd.GetName(), err)
	}
	return &definition, nil
}

// schemaFor returns the schema of an object's kind and version; nil if no CRD has it.
func schemaFor(object *unstructured.Unstructured, crds []*unstructured.Unstructured) *apiextensionsv1.JSONSchemaProps {
	kind := object.GroupVersionKind()
	for _, crd := range crds {
		definition, err := definitionOf(crd)
		if err != nil || definition.Spec.Names.Kind != kind.Kind || definition.Spec.Group != kind.Group {
			continue
		}
		for i := range definition.Spec.Versions {
			if version := &definition.Spec.Versions[i]; version.Name == kind.Version && version.Schema != nil {
				return version.Schema.OpenAPIV3Schema
			}
		}
	}
	return nil
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
