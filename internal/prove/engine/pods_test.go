// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/world"
)

// Only pods that run can be disturbed: the pod of a finished Job is not created again.
func TestPodsThatHaveNotEnded(t *testing.T) {
	c, state := sailing(), world.State{}
	for name, phase := range map[string]string{"new": "", "runs": "Running", "ended": "Succeeded", "failed": "Failed"} {
		state[world.Key{Resource: "pods", Kind: "Pod", Namespace: "default", Name: name}] = &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": phase},
		}}
	}
	state[world.Key{Resource: "services", Kind: "Service", Namespace: "default", Name: "other"}] = &unstructured.Unstructured{Object: map[string]any{}}
	pods := c.podsIn(state)
	for _, pod := range pods {
		if name := pod.GetName(); name != "new" && name != "runs" {
			t.Errorf("%s is among them", name)
		}
	}
	if len(pods) != 2 {
		t.Errorf("there are %d", len(pods))
	}
}

// A pod that the scenario created stays away after its deletion. One of a controller or of the operator does not.
func TestPodsThatAreReplaced(t *testing.T) {
	key := world.Key{Resource: "pods", Kind: "Pod", Namespace: "default", Name: "victory-1"}
	written := write{Moment: Moment{Verb: "create", Resource: "pods", Namespace: "default", Name: "victory-1", Nth: 1}}
	labelled := written
	labelled.Verb = "patch"
	for name, test := range map[string]struct {
		pod    *unstructured.Unstructured
		writes []write
		want   bool
	}{
		"of a controller": {podOf("ReplicaSet"), nil, true},
		"of the operator": {podOf(""), []write{written}, true},
		"of the scenario": {podOf(""), nil, false},
		"only labelled":   {podOf(""), []write{labelled}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := sailing()
			for _, step := range c.reference[:2] {
				step.state, step.writes = world.State{key: test.pod}, test.writes
			}
			if got := len(c.replaceable(1, c.podsIn(c.reference[1].state))) == 1; got != test.want {
				t.Errorf("it is replaced: %v", got)
			}
			planned := slices.ContainsFunc(podsPlans(c), func(p *Plan) bool { return p.Variant == deletePods })
			if planned != test.want {
				t.Errorf("its deletion is planned: %v", planned)
			}
		})
	}
}
