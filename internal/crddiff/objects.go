// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/crdschema"
)

// Invalid is an object that a CRD does not accept.
type Invalid struct {
	Object *unstructured.Unstructured `json:"-"`
	// Name is the object as "Kind namespace/name".
	Name string `json:"name"`
	// Version is the version whose schema the object does not satisfy.
	Version string `json:"version"`
	// Errors are the errors of the API server.
	Errors []string `json:"errors"`
}

// Validate returns the objects that a CRD no longer accepts: their schema, list types and CEL rules, with defaults set
// and unknown fields dropped first. Each object is validated in its own version or, if the CRD has it no longer and no
// webhook converts, in the storage version.
//
// Ratcheting is not assumed. Kubernetes 1.30 and newer accept updates that leave an invalid field as it is, so such
// objects may go on to work; older ones, and clients that recreate the object, get the errors. Transition rules, which
// compare two versions of an object, are not evaluated.
func Validate(definition *apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured) []Invalid {
	schemas := compiler{definition: definition, compiled: map[string]*crdschema.Schema{}}
	var found []Invalid
	for _, object := range objects {
		schema, version, err := schemas.of(object)
		if err != nil {
			found = append(found, Invalid{Object: object, Name: nameOf(object), Version: version, Errors: []string{err.Error()}})
			continue
		}
		content := object.DeepCopy().Object
		schema.Prune(content)
		schema.Default(content)
		var errs []string
		for _, err := range schema.Validate(context.Background(), content, nil) {
			errs = append(errs, err.Error())
		}
		if len(errs) > 0 {
			found = append(found, Invalid{Object: object, Name: nameOf(object), Version: version, Errors: errs})
		}
	}
	return found
}

// Pruned returns the fields of an object that a CRD does not have: the API server drops them when it reads the object.
// A field that is dropped with everything below it is listed once. Pruned returns nil for an object whose version the
// CRD does not have, if a webhook converts it, and for a schema that is not valid; Validate reports both.
func Pruned(definition *apiextensionsv1.CustomResourceDefinition, object *unstructured.Unstructured) []string {
	schemas := compiler{definition: definition, compiled: map[string]*crdschema.Schema{}}
	schema, _, err := schemas.of(object)
	if err != nil {
		return nil
	}
	return schema.Prune(object.DeepCopy().Object)
}

// compiler compiles the schemas of a CRD when they are needed.
type compiler struct {
	definition *apiextensionsv1.CustomResourceDefinition
	compiled   map[string]*crdschema.Schema
}

// of returns the schema for an object, and the version that it belongs to.
func (c compiler) of(object *unstructured.Unstructured) (*crdschema.Schema, string, error) {
	kind := object.GroupVersionKind()
	if kind.Group != c.definition.Spec.Group || kind.Kind != c.definition.Spec.Names.Kind {
		return nil, kind.Version, fmt.Errorf("the object is a %s, not a %s.%s", kind.GroupKind(), c.definition.Spec.Names.Kind, c.definition.Spec.Group)
	}
	v := find(c.definition, kind.Version)
	if v == nil && converts(c.definition) {
		return nil, kind.Version, fmt.Errorf("version %s is not in the CRD; its webhook must convert the object first", kind.Version)
	}
	if v == nil {
		if v = storage(c.definition); v == nil {
			return nil, kind.Version, fmt.Errorf("version %s is not in the CRD, which has no storage version either", kind.Version)
		}
	}
	if schema, has := c.compiled[v.Name]; has {
		return schema, v.Name, nil
	}
	schema, err := crdschema.New(schemaOf(v))
	if err != nil {
		return nil, v.Name, fmt.Errorf("the schema of version %s is invalid: %w", v.Name, err)
	}
	c.compiled[v.Name] = schema
	return schema, v.Name, nil
}

func nameOf(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
