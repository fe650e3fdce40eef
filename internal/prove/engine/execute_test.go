// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/world"
)

// TestIgnoredFindingsDoNotEndARun is about an operator that does not make a Job again, whose status is wrong, and that is in trouble
// while it is disturbed. Whatever the scenario ignores of that, the rest of it is judged.
func TestIgnoredFindingsDoNotEndARun(t *testing.T) {
	for about, test := range map[string]struct {
		ignored string // objects
		want    []string
		steps   []string // that are done after the disturbance
	}{
		"nothing is ignored": {"", []string{"crash status Frigate default/surprise", "crash end-state Job default/log"}, nil},
		"one of them is":     {"Job default/log", []string{"crash status Frigate default/surprise"}, nil},
		"all but one are":    {"Frigate default/surprise, Job default/log", nil, []string{"change", "delete"}}, // which may follow from the Job
		"the others are":     {"Frigate default/surprise, Frigate default/victory", []string{"crash end-state Job default/log"}, nil},
		"all are":            {"Frigate default/surprise, Frigate default/victory, Job default/log", nil, []string{"change", "delete"}},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling = DefaultSettling
				c.o.Ignores = func(o *Observation) string {
					if o.Object != "" && slices.Contains(strings.Split(test.ignored, ", "), o.Object) && o.Family == "crash" {
						return "it is known"
					}
					return ""
				}
				job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "log", "namespace": "default"}}}
				ship := frigate()
				ship.Object["status"] = map[string]any{"ready": true}
				key, _ := find(c.reference[0].state, ship)
				var done []string
				for i, s := range c.reference {
					s.state = world.State{key: ship, {Group: "batch", Resource: "jobs", Kind: "Job", Namespace: "default", Name: "log"}: job}
					s.shape = c.shapeOf(s.state)
					c.o.Steps[i].Do = func(context.Context, client.Client) error {
						done = append(done, c.o.Steps[i].Name)
						return nil
					}
				}
				r := &run{campaign: c, family: "crash", world: world.Of(c.reference[0].state), board: newSwitchboard(c.named), activity: newActivity()}
				disturbs := family{disturb: func(*run, *Plan) (*disturbance, error) {
					return &disturbance{
						act: func(context.Context) error {
							r.world = world.Of(world.State{key: frigate()})
							return nil
						},
						broken: func(rested) []*Observation {
							return []*Observation{{Verdict: "status", Object: "Frigate default/surprise"}}
						},
					}, nil
				}}
				result := &outcome{}
				if err := r.carryOut(t.Context(), &Plan{Family: "crash", Step: 1}, disturbs, result); err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, o := range result.wrong {
					got = append(got, o.Family+" "+o.Verdict+" "+o.Object)
				}
				expectLines(t, got, test.want...)
				expectLines(t, done, test.steps...)
			})
		})
	}
}

// TestRunsThatBeginElsewhere is about operators with a schedule: a run begins minutes after the state from which it starts was saved.
func TestRunsThatBeginElsewhere(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "log-29", "namespace": "default"}}}
	key := world.Key{Group: "batch", Resource: "jobs", Kind: "Job", Namespace: "default", Name: "log-29"}
	for about, test := range map[string]struct {
		now  world.State
		plan Plan
		want string
	}{
		"as it was":                   {nil, Plan{Step: 1}, ""},
		"a schedule was due":          {world.State{key: job}, Plan{Step: 1}, "Job default/log-29 has changed before anything was disturbed: it is present"},
		"the operator does not run":   {world.State{key: job}, Plan{Step: 1, Variant: operatorLate}, ""},
		"nothing was there before it": {world.State{key: job}, Plan{}, ""},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling = DefaultSettling
				c.reference[0].state = world.State{}
				c.reference[0].shape = c.shapeOf(world.State{})
				r := &run{campaign: c, family: "crash", world: world.Of(test.now), board: newSwitchboard(c.named), activity: newActivity()}
				if got, err := r.changedMeanwhile(t.Context(), &test.plan, rested{}); got != test.want || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		})
	}
}

// TestConsequencesOfIgnoredObjects is about an operator that does not make a Job again, and fails or comes back late because of that.
func TestConsequencesOfIgnoredObjects(t *testing.T) {
	const retries = "The operator retries something without end"
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "log", "namespace": "default"}}}
	key := world.Key{Group: "batch", Resource: "jobs", Kind: "Job", Namespace: "default", Name: "log"}
	for about, test := range map[string]struct {
		there bool
		over  rested
		wrong []string
	}{
		"it retries":                    {false, rested{stuck: true}, nil},
		"it retries something else":     {true, rested{stuck: true}, []string{retries}},
		"it backs off":                  {false, rested{backsOff: true}, nil},
		"it backs off, and all is well": {true, rested{backsOff: true}, nil},
	} {
		c := sailing()
		c.o.Ignores = func(o *Observation) string {
			if o.Object == key.String() {
				return "it is known"
			}
			return ""
		}
		c.reference[1].state = world.State{key: job}
		c.reference[1].shape = c.shapeOf(c.reference[1].state)
		state := world.State{}
		if test.there {
			state[key] = job
		}
		r := &run{campaign: c, family: "crash", world: world.Of(state), board: newSwitchboard(c.named), activity: newActivity()}
		result := &outcome{}
		if err := r.conclude(t.Context(), 1, test.over, -1, result); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range result.wrong {
			got = append(got, o.Title)
		}
		if !slices.Equal(got, test.wrong) || result.excused != "" {
			t.Errorf("%s: got %q, excused %q", about, got, result.excused)
		}
	}
}
