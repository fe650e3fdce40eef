// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package applyschema

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const definitions = "#/definitions/"

// GoPackages are the import paths of the packages that hold the types of a group and version.
type GoPackages map[schema.GroupVersion]string

// Document returns an OpenAPI 2 document, as JSON, with a definition for each version of the given kinds. Each is
// named after its Go type, which is how generated code looks for it. A version without a Go package is left out.
// Descriptions and validation are left out too, since merging does without.
func Document(crds []*apiextensionsv1.CustomResourceDefinition, packages GoPackages) ([]byte, error) {
	document := spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "how objects are merged", Version: "unversioned"}},
		Paths:       &spec.Paths{},
		Definitions: objectMeta(),
	}}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
			goPackage, wanted := packages[gvk.GroupVersion()]
			if !wanted {
				continue
			}
			if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
				return nil, fmt.Errorf("%s has no schema for version %s", crd.Name, version.Name)
			}
			root, err := convert(version.Schema.OpenAPIV3Schema)
			if err != nil {
				return nil, fmt.Errorf("converting the schema of %s, version %s: %w", crd.Name, version.Name, err)
			}
			addTypeAndObjectMeta(&root)
			root.AddExtension("x-kubernetes-group-version-kind", []any{
				map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
			})
			document.Definitions[util.ToRESTFriendlyName(goPackage+"."+gvk.Kind)] = root
		}
	}
	return json.MarshalIndent(document, "", "  ")
}

// convert returns what matters for merging.
func convert(props *apiextensionsv1.JSONSchemaProps) (spec.Schema, error) {
	var result spec.Schema
	if props.Type != "" {
		result.Typed(props.Type, props.Format)
	}
	if props.XIntOrString {
		// OpenAPI 2 cannot say "either"; this is how Kubernetes writes it.
		result.Typed("string", "int-or-string")
	}
	if props.Default != nil {
		if err := json.Unmarshal(props.Default.Raw, &result.Default); err != nil {
			return result, fmt.Errorf("reading a default: %w", err)
		}
	}
	for name, property := range props.Properties {
		converted, err := convert(&property)
		if err != nil {
			return result, fmt.Errorf("%s: %w", name, err)
		}
		result.SetProperty(name, converted)
	}
	if props.Items != nil && props.Items.Schema != nil {
		converted, err := convert(props.Items.Schema)
		if err != nil {
			return result, err
		}
		result.Items = &spec.SchemaOrArray{Schema: &converted}
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		converted, err := convert(props.AdditionalProperties.Schema)
		if err != nil {
			return result, err
		}
		result.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &converted}
	}
	if props.XEmbeddedResource {
		addTypeAndObjectMeta(&result)
	}
	addExtensions(&result, props)
	return result, nil
}

func addExtensions(result *spec.Schema, props *apiextensionsv1.JSONSchemaProps) {
	if props.XPreserveUnknownFields != nil {
		result.AddExtension("x-kubernetes-preserve-unknown-fields", *props.XPreserveUnknownFields)
	}
	if props.XListType != nil {
		result.AddExtension("x-kubernetes-list-type", *props.XListType)
	}
	if len(props.XListMapKeys) > 0 {
		result.AddExtension("x-kubernetes-list-map-keys", props.XListMapKeys)
	}
	if props.XMapType != nil {
		result.AddExtension("x-kubernetes-map-type", *props.XMapType)
	}
}

// addTypeAndObjectMeta adds what every object has. A CustomResourceDefinition says no more of it than that metadata is
// an object.
func addTypeAndObjectMeta(object *spec.Schema) {
	object.SetProperty("apiVersion", *spec.StringProperty())
	object.SetProperty("kind", *spec.StringProperty())
	object.SetProperty("metadata", *spec.RefSchema(definitions + metav1.ObjectMeta{}.OpenAPIModelName()))
}

// objectMeta returns the definition of metadata and all that it refers to.
func objectMeta() spec.Definitions {
	known := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(definitions + name) })
	found := spec.Definitions{}
	var add func(name string)
	add = func(name string) {
		if _, again := found[name]; again {
			return
		}
		found[name] = known[name].Schema
		for _, dependency := range known[name].Dependencies {
			add(dependency)
		}
	}
	add(metav1.ObjectMeta{}.OpenAPIModelName())
	return found
}
