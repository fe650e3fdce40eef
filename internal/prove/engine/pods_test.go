// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
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
