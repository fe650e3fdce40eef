// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "testing"

func TestStatesByTheRulesOfKstatus(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, generation: 2}\nspec: {replicas: 2}\n"
	const daemons = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a, generation: 1}\n"
	const custom = "apiVersion: sea.example.com/v1\nkind: Ship\nmetadata: {name: a, generation: 2}\n"
	for name, test := range map[string]struct {
		object string
		want   state
	}{
		"not observed":    {deployment + "status: {observedGeneration: 1}", state{inProgress, "the rollout has not started yet"}},
		"rolling out":     {deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, availableReplicas: 1}", state{inProgress, "1 of 2 pods are updated, 1 are available"}},
		"rolled out":      {deployment + "status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}", state{current, ""}},
		"too late":        {deployment + "status: {observedGeneration: 2, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: late}]}", state{failed, "late"}},
		"no nodes":        {daemons + "status: {observedGeneration: 1}", state{current, ""}},
		"some nodes":      {daemons + "status: {observedGeneration: 1, desiredNumberScheduled: 3, updatedNumberScheduled: 2, numberAvailable: 1}", state{inProgress, "2 of 3 pods are updated, 1 are available"}},
		"set":             {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a, generation: 1}\nstatus: {observedGeneration: 1, updatedReplicas: 1, availableReplicas: 1}", state{current, ""}},
		"job":             {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nstatus: {active: 1}", state{current, ""}},
		"failed job":      {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nstatus: {conditions: [{type: Failed, status: 'True', reason: BackoffLimitExceeded}]}", state{failed, "BackoffLimitExceeded"}},
		"no conditions":   {custom, state{current, ""}},
		"ready":           {custom + "status: {observedGeneration: 2, conditions: [{type: Ready, status: 'True'}]}", state{current, ""}},
		"not ready":       {custom + "status: {conditions: [{type: Ready, status: 'False', reason: Loading, message: cargo}]}", state{inProgress, "cargo"}},
		"reconciling":     {custom + "status: {conditions: [{type: Reconciling, status: 'True', reason: Loading}]}", state{inProgress, "Loading"}},
		"stalled":         {custom + "status: {conditions: [{type: Stalled, status: 'True'}]}", state{failed, "Stalled is True"}},
		"being deleted":   {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}", state{terminating, "it is being deleted"}},
		"kind":            {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nstatus: {conditions: [{type: Established, status: 'True'}]}", state{current, ""}},
		"kind to come":    {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition", state{inProgress, "the server has not processed it yet"}},
		"kind in the way": {"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nstatus: {conditions: [{type: NamesAccepted, status: 'False', reason: Taken, message: sorry}]}", state{failed, "Taken: sorry"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(parse(t, test.object)[0]); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	if got := stateOf(nil); got.status != notFound {
		t.Errorf("nothing is %+v", got)
	}
}
