// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kubernetes stopped serving apiextensions.k8s.io/v1beta1 in 1.22. Projects that are older than that still run if their CRDs
// are converted as API servers did it, and keep the fields that their schemas do not have.

// current returns a definition in the version that API servers take.
func (p *Project) current(definition *unstructured.Unstructured, folder string) (*unstructured.Unstructured, error) {
	version := definition.GroupVersionKind().Version
	if version == "v1" {
		return definition, nil
	}
	position := p.positionOf(definition, folder)
	old := fmt.Sprintf("CRD %s has version %s, which Kubernetes stopped serving in 1.22", definition.GetName(), version)
	converted, without, err := fromV1beta1(definition)
	if err != nil {
		err = fmt.Errorf("%s, and it cannot be converted: %w; change it to %s/v1", old, err, extensionsGroup)
		if position.file == "" {
			return nil, err
		}
		return nil, &FileError{File: position.file, Line: position.line, Err: err}
	}
	if position.file != "" {
		old = fmt.Sprintf("%s:%d: %s", position.file, position.line, old)
	}
	old = strings.Join(append([]string{old}, without...), "; ")
	p.warn("%s; it is converted to %s/v1 here: change the file", old, extensionsGroup)
	return converted, nil
}

// positionOf returns where a definition is in the files of a folder; without a file if it is not found.
func (p *Project) positionOf(definition *unstructured.Unstructured, folder string) found {
	all, err := p.readFolders(folder)
	if err != nil {
		return found{}
	}
	for _, one := range all {
		if IsCRD(one.Unstructured) && one.GetName() == definition.GetName() && one.GroupVersionKind() == definition.GroupVersionKind() {
			return one
		}
	}
	return found{}
}

var definitionVersions = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return scheme
}()

// fromV1beta1 converts a definition, and says which versions lose their schema, and why.
func fromV1beta1(definition *unstructured.Unstructured) (converted *unstructured.Unstructured, without []string, err error) {
	var old apiextensionsv1beta1.CustomResourceDefinition
	if definition.GroupVersionKind().Version != "v1beta1" {
		return nil, nil, errors.New("the version is not known")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &old); err != nil {
		return nil, nil, err
	}
	if old.Spec.Group == "" || old.Spec.Names.Kind == "" || old.Spec.Version == "" && len(old.Spec.Versions) == 0 {
		return nil, nil, errors.New("its spec has no group, kind or version")
	}
	preserves := old.Spec.PreserveUnknownFields == nil || *old.Spec.PreserveUnknownFields
	definitionVersions.Default(&old)
	var internal apiextensions.CustomResourceDefinition
	var current apiextensionsv1.CustomResourceDefinition
	if err := definitionVersions.Convert(&old, &internal, nil); err != nil {
		return nil, nil, err
	}
	internal.Spec.PreserveUnknownFields = new(false)
	if err := definitionVersions.Convert(&internal, &current, nil); err != nil {
		return nil, nil, err
	}
	for i := range current.Spec.Versions {
		version := &current.Spec.Versions[i]
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			version.Schema = anything()
			continue
		}
		root := version.Schema.OpenAPIV3Schema
		root.Type = "object"
		metadata, has := root.Properties["metadata"]
		addExtensions(root, preserves)
		if has {
			root.Properties["metadata"] = metadata // every object has it as it is
		}
		if err := checkStructural(root); err != nil {
			without = append(without, fmt.Sprintf("the schema of %s is left out, because it is not structural (%v), so any value is accepted", version.Name, err))
			version.Schema = anything()
		}
	}
	current.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&current)
	if err != nil {
		return nil, nil, err
	}
	delete(fields, "status")
	fields["apiVersion"], fields["kind"], fields["metadata"] = extensionsGroup+"/v1", definitionKind, definition.Object["metadata"]
	return &unstructured.Unstructured{Object: fields}, without, nil
}

// checkStructural returns why v1 does not allow a schema.
func checkStructural(schema *apiextensionsv1.JSONSchemaProps) error {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
		return err
	}
	typed, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return err
	}
	return structuralschema.ValidateStructural(nil, typed).ToAggregate()
}

// anything is a schema that accepts and keeps all fields.
func anything() *apiextensionsv1.CustomResourceValidation {
	return &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
}

// addExtensions sets the extensions that v1 requires where v1beta1 did not: for values that are an integer or a string, and for
// objects that keep unknown fields.
func addExtensions(schema *apiextensionsv1.JSONSchemaProps, preserves bool) {
	if schema.Type == "" && len(schema.AnyOf) == 2 && schema.AnyOf[0].Type == "integer" && schema.AnyOf[1].Type == "string" { //nolint:mnd // the two types
		schema.XIntOrString = true
	}
	if preserves && schema.Type == "object" && schema.AdditionalProperties == nil {
		schema.XPreserveUnknownFields = new(true)
	}
	for name, property := range schema.Properties {
		addExtensions(&property, preserves)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		addExtensions(schema.Items.Schema, preserves)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		addExtensions(schema.AdditionalProperties.Schema, preserves)
	}
}
