// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"reflect"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// apiServer validates with the parts of the API server, put together here a second time.
type apiServer struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func newAPIServer(t *testing.T, s subject) apiServer {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s.schema(), internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	return apiServer{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// refuses returns what is wrong with an update.
func (a apiServer) refuses(t *testing.T, object, old *unstructured.Unstructured) error {
	t.Helper()
	errs := validation.ValidateCustomResource(nil, object.Object, a.validator)
	errs = append(errs, objectmeta.Validate(t.Context(), nil, object.Object, a.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, a.structural, object.Object)...)
	broken, _ := a.rules.Validate(t.Context(), nil, a.structural, object.Object, old.Object, celconfig.RuntimeCELCostBudget)
	return append(errs, broken...).ToAggregate()
}

func (a apiServer) stored(object map[string]any) *unstructured.Unstructured {
	stored := normalize(object)
	defaulting.Default(stored, a.structural)
	return &unstructured.Unstructured{Object: stored}
}

var tracked = structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}

// The property that everything else rests on: whatever is proposed, the API server accepts.
func TestProposalsSatisfyTheSchema(t *testing.T) {
	for at, s := range subjects(t) {
		t.Run(s.name, func(t *testing.T) {
			server := newAPIServer(t, s)
			before := s.object.DeepCopy()
			old := server.stored(s.object.Object)
			changes := s.propose(Options{Seed: int64(at), Max: 150})
			if len(changes) < 7 {
				t.Errorf("only %d changes are proposed: %v", len(changes), changes)
			}
			for _, change := range changes {
				changed, err := change.Apply(s.object.Object)
				if err != nil {
					t.Errorf("%s: %v", change, err)
					continue
				}
				stored := server.stored(changed)
				if err := server.refuses(t, stored, old); err != nil {
					t.Errorf("%s: the API server refuses it: %v", change, err)
				}
				if unknown := pruning.PruneWithOptions(normalize(changed), server.structural, true, tracked); len(unknown) > 0 {
					t.Errorf("%s: the API server prunes %v", change, unknown)
				}
				if reflect.DeepEqual(stored.Object, old.Object) {
					t.Errorf("%s: makes no difference", change)
				}
			}
			if !reflect.DeepEqual(before, s.object) {
				t.Error("the object was changed")
			}
		})
	}
}
