// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/opdock/opdock/internal/crdschema"
)

// Options select changes. The zero value is usable.
type Options struct {
	// Seed varies the order among changes that are equally telling. The same seed gives the same order.
	Seed int64
	// Max is the number of changes, 200 if it is 0. No class is left out for it entirely.
	Max int
	// ReplicasPath is specReplicasPath of the CRD's scale subresource, such as ".spec.replicas", or empty. Without it,
	// properties with a number of replicas are recognized by their name.
	ReplicasPath string
	// MaxReplicas is the largest number of replicas that is proposed, 20 if it is 0. A maximum of thousands in the
	// schema tests the machine rather than the operator.
	MaxReplicas int64
}

const (
	defaultMax         = 200
	defaultMaxReplicas = 20
)

// Propose returns changes of one property each to an object, the most telling first. Groups take turns: scale up, scale down,
// other images, optional blocks removed, other valid values, limits, misuses. Every change satisfies the schema and its rules
// when it is applied to the object alone. The schema belongs to one version of a CRD, and the object has that version.
//
// Propose returns nil if the schema is invalid or the object does not satisfy it; Check returns the reason.
func Propose(schema *apiextensionsv1.JSONSchemaProps, object map[string]any, o Options) []Change {
	judge, err := newJudge(schema, object)
	if err != nil {
		return nil
	}
	if o.Max == 0 {
		o.Max = defaultMax
	}
	if o.MaxReplicas == 0 {
		o.MaxReplicas = defaultMaxReplicas
	}
	w := &walker{options: o, object: normalize(object), sampler: &sampler{parts: map[string]*crdschema.Schema{}}}
	w.root(schema)
	return choose(order(w.candidates, o.Seed), judge, o.Max)
}

// Check returns why no change can be proposed for an object: its schema is invalid, or the object does not satisfy it.
func Check(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) error {
	_, err := newJudge(schema, object)
	return err
}

// Sample returns an object with as little content as the schema of its version asks for, for projects without samples.
// Names and texts in it are made up. It returns an error if the schema alone does not say enough.
func Sample(schema *apiextensionsv1.JSONSchemaProps, apiVersion, kind, name string) (map[string]any, error) {
	m := &sampler{parts: map[string]*crdschema.Schema{}}
	sample := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
	for _, property := range slices.Sorted(maps.Keys(schema.Properties)) {
		props := schema.Properties[property]
		if slices.Contains(notWalked, property) || property != "spec" && !slices.Contains(schema.Required, property) {
			continue
		}
		value, _ := m.sample(&props, property)
		if value == nil {
			return nil, fmt.Errorf("no %s could be derived from the schema of %s: write a sample by hand", property, kind)
		}
		sample[property] = value
	}
	if err := Check(schema, sample); err != nil {
		return nil, fmt.Errorf("no %s could be derived from its schema: write a sample by hand: %w", kind, err)
	}
	return sample, nil
}

// judge decides whether a change is possible and makes a difference.
type judge struct {
	schema *crdschema.Schema
	object map[string]any // as it is given
	stored map[string]any // with its defaults
	// unknown is the number of fields of the object that its schema does not have.
	unknown int
	// seen are the results of changes, as JSON.
	seen map[string]bool
}

func newJudge(schema *apiextensionsv1.JSONSchemaProps, object map[string]any) (*judge, error) {
	compiled, err := crdschema.New(schema)
	if err != nil {
		return nil, err
	}
	j := &judge{schema: compiled, object: normalize(object), seen: map[string]bool{}}
	j.stored = normalize(object)
	j.unknown = len(j.schema.Prune(j.stored))
	j.schema.Default(j.stored)
	if err := j.schema.Validate(context.Background(), j.stored, nil).ToAggregate(); err != nil {
		return nil, err
	}
	return j, nil
}

// verdict is what a judge says about a change.
type verdict int

const (
	possible   verdict = iota
	impossible         // the API server would refuse it, or drop a part of it
	pointless          // it makes no difference, or the same as a previous change
)

// of judges a change, and remembers its result if it is possible.
func (j *judge) of(change Change) verdict {
	changed, err := change.Apply(j.object)
	if err != nil {
		return impossible
	}
	// The fields that the object has and its schema has not are pruned from both; a change must not add to them.
	if len(j.schema.Prune(changed)) > j.unknown {
		return impossible
	}
	j.schema.Default(changed)
	result, err := json.Marshal(changed)
	switch {
	case err != nil:
		return impossible
	case equal(changed, j.stored) || j.seen[string(result)]:
		return pointless
	case len(j.schema.Validate(context.Background(), changed, j.stored)) > 0:
		return impossible
	}
	j.seen[string(result)] = true
	return possible
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
