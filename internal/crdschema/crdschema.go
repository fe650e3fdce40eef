// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdschema defaults, prunes and validates custom resources in this process, with the code of the API server:
// the structural schema, list types, embedded metadata and CEL rules, including transition rules.
package crdschema

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Schema is the compiled schema of one version of a CRD, or of a part of it.
type Schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator // nil without CEL rules
	root       bool
}

// New compiles the schema of one version of a CRD. Its objects are whole custom resources.
func New(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) { return compile(props, true) }

// NewPart compiles the schema of one property. Rules of the properties around it are not part of it.
func NewPart(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) { return compile(props, false) }

func compile(props *apiextensionsv1.JSONSchemaProps, root bool) (*Schema, error) {
	if props == nil {
		// A version without a schema, which only old CRDs have, keeps and accepts everything.
		preserve := true
		props = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, fmt.Errorf("converting the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("the schema is not structural: %w", err)
	}
	structural = structural.DeepCopy() // NewStructural shares the defaults with the CRD, and PruneDefaults changes them.
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("pruning the defaults of the schema: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, fmt.Errorf("compiling the schema: %w", err)
	}
	return &Schema{
		structural: structural, validator: validator, root: root,
		rules: cel.NewValidator(structural, root || structural.XEmbeddedResource, celconfig.PerCallLimit),
	}, nil
}

// Default sets the defaults in a value, as the API server does when it reads an object and before it validates one.
func (s *Schema) Default(value any) {
	defaulting.PruneNonNullableNullsWithoutDefaults(value, s.structural)
	defaulting.Default(value, s.structural)
}

// Prune removes the fields that the schema does not have, and returns their paths.
func (s *Schema) Prune(value any) []string {
	return pruning.PruneWithOptions(value, s.structural, s.root, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Validate returns what the API server has against a value. With a previous value, it evaluates transition rules too.
// It does not ratchet: an unchanged field is as invalid as a changed one.
func (s *Schema) Validate(ctx context.Context, value, previous any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, value, s.validator)
	if object, ok := value.(map[string]any); ok {
		errs = append(errs, objectmeta.Validate(ctx, nil, object, s.structural, false)...)
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	}
	if s.rules == nil || blocksRules(errs) {
		return errs
	}
	broken, _ := s.rules.Validate(ctx, nil, s.structural, value, previous, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...)
}

// blocksRules reports whether the API server skips the CEL rules because the value is too far from its schema.
func blocksRules(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
