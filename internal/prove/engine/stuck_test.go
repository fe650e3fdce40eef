// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"testing"

	"github.com/opdock/opdock/internal/prove/world"
)

// Only a pod that its StatefulSet waits for, and would replace, is deleted.
func TestStuckPods(t *testing.T) {
	const ready, inOrder, rolling = "True", "OrderedReady", "RollingUpdate"
	for about, test := range map[string]struct {
		management, strategy string
		observed             int64
		revision, ready      string
		owner                string
		want                 []string
	}{
		"it has the template from before":          {inOrder, rolling, 3, "bad", "False", "set", []string{"victory-1"}},
		"it has the template that is wanted":       {inOrder, rolling, 3, "good", "False", "set", nil},
		"it is ready":                              {inOrder, rolling, 3, "bad", ready, "set", nil},
		"it belongs to another":                    {inOrder, rolling, 3, "bad", "False", "other", nil},
		"pods are not replaced in order":           {"Parallel", rolling, 3, "bad", "False", "set", nil},
		"the operator replaces pods":               {inOrder, "OnDelete", 3, "bad", "False", "set", nil},
		"the StatefulSet has not seen the changes": {inOrder, rolling, 2, "bad", "False", "set", nil},
	} {
		set := read(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {namespace: default, name: victory, uid: set, generation: 3}
spec: {podManagementPolicy: %s, updateStrategy: {type: %s}}
status: {observedGeneration: %d, updateRevision: good}
`, test.management, test.strategy, test.observed))
		pod := read(t, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  namespace: default
  name: victory-1
  labels: {controller-revision-hash: %s}
  ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: victory, uid: %s, controller: true}]
status: {conditions: [{type: Ready, status: "%s"}]}
`, test.revision, test.owner, test.ready))
		var got []string
		for _, one := range stuckPods(world.State{
			{Group: "apps", Resource: "statefulsets", Kind: "StatefulSet", Namespace: "default", Name: "victory"}: set,
			{Resource: "pods", Kind: "Pod", Namespace: "default", Name: "victory-1"}:                              pod,
		}) {
			got = append(got, one.GetName())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", about, got, test.want)
		}
	}
}
