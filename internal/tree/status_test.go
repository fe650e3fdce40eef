// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Unknown operators use many different conditions and phases.
func TestDescribeOthersStatus(t *testing.T) {
	for name, test := range map[string]struct {
		status string // as YAML
		state  State
		why    string
	}{
		"kubebuilder's scaffold begins": {`{conditions: [{type: Available, status: Unknown, reason: Reconciling, message: Starting reconciliation}]}`,
			Busy, "Reconciling (Reconciling): Starting reconciliation"},
		"kubebuilder's scaffold":          {`{conditions: [{type: Available, status: "True", reason: Reconciling, message: created}]}`, Good, "Available"},
		"available and still progressing": {`{conditions: [{type: Progressing, status: "True"}, {type: Available, status: "True"}]}`, Good, "Available"},
		"progressing": {`{conditions: [{type: Progressing, status: "True", reason: Rolling, message: 1 of 3}, {type: Available, status: "False"}]}`,
			Busy, "Progressing (Rolling): 1 of 3"},
		"not available":        {`{conditions: [{type: Available, status: "False", reason: Resizing, message: wait}]}`, Busy, "Not Available (Resizing): wait"},
		"degraded":             {`{conditions: [{type: Available, status: "True"}, {type: Degraded, status: "True", reason: R, message: half}]}`, Bad, "Degraded (R): half"},
		"not degraded":         {`{conditions: [{type: Degraded, status: "False"}, {type: Available, status: "True"}]}`, Good, "Available"},
		"completed":            {`{conditions: [{type: Completed, status: "True"}]}`, Good, "Completed"},
		"complete, as a Job":   {`{conditions: [{type: Complete, status: "True"}]}`, Good, "Complete"},
		"succeeded":            {`{conditions: [{type: Succeeded, status: "True"}]}`, Good, "Succeeded"},
		"failed":               {`{conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`, Bad, "Failed (BackoffLimitExceeded)"},
		"ready comes first":    {`{conditions: [{type: Ready, status: "True"}, {type: Degraded, status: "True"}]}`, Good, "Ready"},
		"unknown type":         {`{conditions: [{type: Docked, status: "True", reason: Moored, lastTransitionTime: "2026-01-02T00:00:00Z"}]}`, Plain, "Docked (Moored)"},
		"unknown type, untrue": {`{conditions: [{type: Docked, status: "False"}]}`, Plain, "Docked False"},
		"the last of unknown types": {`{conditions: [{type: Docked, status: "True", lastTransitionTime: "2026-01-02T00:00:00Z"},
  {type: Loaded, status: "True", lastTransitionTime: "2026-01-03T00:00:00Z"}]}`, Plain, "Loaded"},
		"outdated":             {`{observedGeneration: 2, conditions: [{type: Available, status: "True"}]}`, Busy, "Changed: its status describes an earlier spec"},
		"outdated condition":   {`{conditions: [{type: Available, status: "True", observedGeneration: 2}]}`, Busy, "Changed: its status describes an earlier spec"},
		"outdated phase":       {`{observedGeneration: 2, phase: Running}`, Busy, "Changed: its status describes an earlier spec"},
		"phase":                {`{phase: Running, message: fine}`, Good, "Running"},
		"phase, in progress":   {`{phase: Provisioning, message: soon}`, Busy, "Provisioning: soon"},
		"phase, bad":           {`{phase: Failed, reason: R, message: broke}`, Bad, "Failed (R): broke"},
		"phase, unknown":       {`{state: Anchored}`, Plain, "Anchored"},
		"ready":                {`{ready: true}`, Good, "Ready"},
		"not ready":            {`{ready: false}`, Busy, "Not ready"},
		"only other fields":    {`{nodes: [a, b]}`, Good, "Current"},
		"only its generation":  {`{observedGeneration: 3}`, Good, "Current"},
		"only zeros":           {`{replicas: 0, url: "", nodes: [], load: {mean: 0.0}, paused: false}`, Busy, "New: no controller has written its status yet"},
		"conditions are empty": {`{conditions: []}`, Busy, "New: no controller has written its status yet"},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			manifest := "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: argo, uid: u, generation: 3}\nstatus: " + test.status
			if err := yaml.Unmarshal([]byte(manifest), object); err != nil {
				t.Fatal(err)
			}
			got := Describe(object, schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: "Ship"})
			if got.State != test.state || got.Why() != test.why {
				t.Errorf("got %d %q, want %d %q", got.State, got.Why(), test.state, test.why)
			}
		})
	}
}
