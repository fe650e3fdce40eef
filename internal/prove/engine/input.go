// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/values"
)

// mostInputs is how many values of the spec are tried for each custom resource.
const mostInputs = 120

// inputsInTurn is how many values of a custom resource come before another kind of value has its turn again.
const inputsInTurn = 6

// inTurn ranks the values of the custom resources of a scenario, so that the first ones do not all change the same of each.
func inTurn(value, subject int) int {
	return value - value%inputsInTurn + (value%inputsInTurn+inputsInTurn-subject%inputsInTurn)%inputsInTurn
}

// inputPlans change one property of a custom resource, and take the change back.
func inputPlans(c *campaign) []*Plan { return c.inputs(c.operator.Definitions()) }

// inputs are the plans for the kinds that these CRDs define.
func (c *campaign) inputs(definitions []*unstructured.Unstructured) (plans []*Plan) {
	step, last := c.disturbedStep(), c.fullest()
	if step == 0 {
		return nil
	}
	for nth, subject := range c.o.Subjects {
		key, live := find(c.reference[step-1].state, subject)
		if live == nil {
			c.unplanned = append(c.unplanned, report.NotTried{
				Family: "input", What: "values of " + nameOfObject(subject), Reason: fmt.Sprintf("it does not exist at the end of step %q", c.o.Steps[step-1].Name),
			})
			continue
		}
		plain := live.DeepCopy()
		delete(plain.Object, "status")
		// The cluster is watched in the preferred version of each kind, which may not be the one that the scenario applies.
		schema, scale := schemaOf(live, definitions)
		if err := checkInput(schema, plain); err != nil {
			c.unplanned = append(c.unplanned, report.NotTried{Family: "input", What: "values of " + key.String(), Reason: err.Error()})
			continue
		}
		proposals := values.Propose(schema, plain.Object, values.Options{Seed: int64(c.o.Seed), Max: mostInputs, ReplicasPath: scale, MaxReplicas: 8}) //nolint:gosec,mnd // any number will do; pods cost time
		proposals = slices.Insert(proposals, min(len(proposals), afterFirst), notes()...)
		worth := worthStart(proposals)
		for i, change := range proposals {
			plans = append(plans, &Plan{
				Family: "input", Variant: strings.ToLower(string(change.Class)), Step: step, Object: key.String(), Path: change.Path, Value: change, Fresh: worth[i], rank: inTurn(i, nth),
				Says: fmt.Sprintf("%s gets %s, and the change is taken back", key, change),
			})
		}
	}
	plans = append(plans, c.contentPlans(step)...)
	starts := 0
	for at := last; at > 1 && len(plans) > 0; at-- {
		if at < last && !c.changesSpecs(at-1) {
			continue
		}
		plans = append(plans, &Plan{
			Family: "input", Variant: unchanged, Step: at, Fresh: true, rank: starts * betweenStarts,
			Says: fmt.Sprintf("Another cluster gets the custom resources as they are at the end of step %q from the start", c.o.Steps[at-1].Name),
		})
		starts++
	}
	return plans
}

// betweenStarts is after how many values another end of a step is compared with a fresh start.
const betweenStarts = 6

// changesSpecs reports whether a step changes a custom resource that was there before.
func (c *campaign) changesSpecs(step int) bool {
	return slices.ContainsFunc(c.o.Subjects, func(subject *unstructured.Unstructured) bool {
		now, there := c.specAfter(step, subject)
		before, was := c.specAfter(step-1, subject)
		return there && was && !reflect.DeepEqual(now, before)
	})
}

// afterFirst is after how many values of the spec come the labels and annotations that users add: when each group of values had
// its first.
const afterFirst = 7

// notes are changes to the metadata of a custom resource. Many operators pass labels and annotations on, and some never take
// them away again.
func notes() []values.Change {
	return []values.Change{
		{Path: []string{"metadata", "labels", "example.com/opdock"}, Value: "example", Class: values.Valid, Why: "a label of a user"},
		{Path: []string{"metadata", "annotations", "example.com/opdock"}, Value: "example", Class: values.Valid, Why: "an annotation of a user"},
	}
}

// checkInput returns why no values can be tried for an object.
func checkInput(schema *apiextensionsv1.JSONSchemaProps, object *unstructured.Unstructured) error {
	if schema == nil {
		return errors.New("its CRD has no schema of " + object.GetAPIVersion())
	}
	if err := values.Check(schema, object.Object); err != nil {
		return fmt.Errorf("it does not satisfy the schema of %s: %w", object.GetAPIVersion(), err)
	}
	return nil
}

// worthStart decides which changes are compared with a fresh start, which takes as long as another run: all that the operator
// should carry out, and for properties that have none, the first that it may.
func worthStart(proposals []values.Change) []bool {
	worth := make([]bool, len(proposals))
	tried := map[string]bool{}
	for _, class := range []values.Class{values.Valid, values.Limit} {
		for i, change := range proposals {
			property := values.Path(change.Property)
			if change.Class == class && (class == values.Valid || !tried[property]) && !change.Pauses() {
				worth[i], tried[property] = true, true
			}
		}
	}
	return worth
}

// schemaOf is the schema of a custom resource in its version, and where its replicas are.
func schemaOf(object *unstructured.Unstructured, definitions []*unstructured.Unstructured) (schema *apiextensionsv1.JSONSchemaProps, replicas string) {
	for _, definition := range definitions {
		var crd apiextensionsv1.CustomResourceDefinition
		if runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &crd) != nil {
			continue
		}
		if crd.Spec.Group != object.GroupVersionKind().Group || crd.Spec.Names.Kind != object.GetKind() {
			continue
		}
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			if version.Name != object.GroupVersionKind().Version || version.Schema == nil {
				continue
			}
			if version.Subresources != nil && version.Subresources.Scale != nil {
				replicas = version.Subresources.Scale.SpecReplicasPath
			}
			return version.Schema.OpenAPIV3Schema, replicas
		}
	}
	return nil, ""
}

func feed(r *run, p *Plan) (*disturbance, error) {
	target := named(r.world.State(), p.Object)
	if target == nil {
		return nil, &notThereError{p.Object}
	}
	if p.Variant == content {
		return refill(r, p, target), nil
	}
	change, err := changeOf(p.Value)
	if err != nil {
		return nil, err
	}
	d := r.changeAndRevert(p, target, func(live *unstructured.Unstructured) error {
		changed, err := change.Apply(live.Object)
		if err == nil {
			live.Object = changed
		}
		return err
	})
	if change.Class == values.Misuse {
		r.watchMisuse(p, change, d)
	}
	return d, nil
}

// changeAndRevert changes an object of the scenario, and reverts the change.
func (r *run) changeAndRevert(p *Plan, target *unstructured.Unstructured, how func(live *unstructured.Unstructured) error) *disturbance {
	before := r.specs()
	if !r.campaign.isSubject(p.Object) {
		before = append(before, target.DeepCopy())
	}
	state := r.world.State()
	return &disturbance{
		act: func(ctx context.Context) error {
			var failed error
			err := r.change(ctx, target, func(live *unstructured.Unstructured) { failed = how(live) })
			if failed != nil {
				return failed
			}
			return err
		},
		heal: func(ctx context.Context) error {
			if err := r.restore(ctx, before); err != nil {
				return err
			}
			return r.unstick(ctx)
		},
		broken: func(over rested) []*Observation {
			r.changed = r.made(over)
			return r.healthOf(p.Step-1, over)
		},
		meanwhile: func(context.Context) ([]*Observation, error) {
			return r.campaign.outdated(p.Step-1, state, r.made(rested{})), nil
		},
	}
}

// changeOf reads a change that may come from a file.
func changeOf(value any) (change values.Change, err error) {
	if change, ok := value.(values.Change); ok {
		return change, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return change, fmt.Errorf("reading a plan: %w", err)
	}
	// Unlike encoding/json, it reads whole numbers as such.
	if err := utiljson.Unmarshal(encoded, &change); err != nil {
		return change, fmt.Errorf("reading a plan: %w", err)
	}
	return change, nil
}
