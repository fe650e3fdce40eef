// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/prove/world"
)

// TestWhatCustomResourcesSay has conditions, and phases of those that have none.
func TestWhatCustomResourcesSay(t *testing.T) {
	for about, test := range map[string]struct {
		status                      string
		claims, settled, unfinished bool
	}{
		"nothing":                         {`{}`, false, false, false},
		"a condition":                     {`{conditions: [{type: Ready, status: "True"}]}`, true, true, false},
		"one that is false":               {`{conditions: [{type: Ready, status: "False"}]}`, false, false, true},
		"that it is available":            {`{conditions: [{type: Available, status: "True"}]}`, true, false, false},
		"that only something answers":     {`{conditions: [{type: Available, status: "True"}, {type: Ready, status: "False"}]}`, false, false, true},
		"that it is degraded":             {`{conditions: [{type: Ready, status: "True"}, {type: Degraded, status: "True"}]}`, false, true, false},
		"a phase":                         {`{phase: Healthy}`, true, true, false},
		"one that a pod may have":         {`{phase: Running}`, false, false, false},
		"another word":                    {`{phase: Deployed}`, false, false, false},
		"a state":                         {`{state: ready}`, true, true, false},
		"a phase on the way":              {`{phase: Creating}`, false, false, true},
		"a state that is an error":        {`{state: error}`, false, false, true},
		"a phase that is degraded":        {`{phase: Ready, conditions: [{type: Degraded, status: "True"}]}`, false, true, false},
		"a phase of another generation":   {`{phase: Ready, observedGeneration: 1}`, true, false, true},
		"a phase beside other conditions": {`{phase: Pending, conditions: [{type: PodsReady, status: "True"}]}`, false, false, true},
		"a phase beside a condition":      {`{phase: Provisioned, conditions: [{type: Ready, status: "True"}]}`, true, true, false},
		"that all pods are ready":         {`{conditions: [{type: AllReplicasReady, status: "True"}]}`, true, true, false},
		"that something else is ready":    {`{conditions: [{type: ServiceReady, status: "True"}]}`, false, false, false},
		"that it is not, but its pods":    {`{conditions: [{type: Ready, status: "False"}, {type: PodsReady, status: "True"}]}`, false, false, true},
		"a history of states":             {`{state: initializing, conditions: [{type: ready, status: "True"}, {type: initializing, status: "True"}]}`, false, false, true},
	} {
		object := read(t, "{apiVersion: sea.example.com/v1, kind: Frigate, metadata: {name: victory, generation: 2}, status: "+test.status+"}")
		_, claim := claimOf(object)
		status, _ := unfinished(object)
		if claims, settled, unfinished := claim != "", isSettledReady(object), status != ""; claims != test.claims || settled != test.settled || unfinished != test.unfinished {
			t.Errorf("%s: it is ready: %v, settled: %v, unfinished: %v", about, claims, settled, unfinished)
		}
	}
}

// TestPhasesOnTheWay has phases that end with a finished change, and ones that do not.
func TestPhasesOnTheWay(t *testing.T) {
	for want, phases := range map[bool][]string{
		true: {
			"Pending", "Creating", "CreatingCluster", "Init", "Init:0/2", "Initializing", "initialising", "Provisioning",
			"Progressing", "InProgress", "In progress", "Updating", "Upgrading", "Deploying", "Installing", "ScalingUp",
			"Waiting", "WaitForPods", "Reconciling", "Starting", "Configuring", "Bootstrapping", "Deleting", "Terminating",
			"Failed", "Failure", "FailedToCreate", "Error", "Degraded", "Unhealthy", "NotReady", "Not ready", "Unknown",
		},
		false: {
			"", "Created", "Initialized", "InitDone", "Provisioned", "Updated", "Upgraded", "UpToDate", "Deployed",
			"Installed", "Scaled", "Reconciled", "Started", "Configured", "Bootstrapped", "Terminated", "Ready", "Running",
			"Active", "Succeeded", "Scale", "Update", "Startup complete",
		},
	} {
		for _, phase := range phases {
			if got := isUnfinishedPhase(phase); got != want {
				t.Errorf("%q: unfinished: %v", phase, got)
			}
		}
	}
}

// TestPhasesThatAreWrong has a custom resource whose pod is not ready.
func TestPhasesThatAreWrong(t *testing.T) {
	for phase, wrong := range map[string]bool{"Ready": true, "Running": false, "Pending": false} {
		subject, pod := frigate(), podOf("Frigate")
		subject.SetUID("u1")
		subject.Object["status"] = map[string]any{"phase": phase}
		pod.SetOwnerReferences([]metav1.OwnerReference{{UID: "u1"}})
		c := sailing()
		c.o.Subjects = []*unstructured.Unstructured{subject}
		found := falseReady(0, world.State{
			{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}: subject,
			{Resource: "pods", Kind: "Pod", Namespace: "default", Name: "victory-1"}:                                 pod,
		}, c.isSubject)
		if (len(found) > 0) != wrong {
			t.Errorf("%s: %v", phase, found)
		}
		for _, o := range found {
			if o.Got != "Ready" || o.Want != "not Ready, because Pod is not ready" || o.Fields[0] != "status.phase" {
				t.Errorf("%s: %+v", phase, o)
			}
		}
	}
}

// TestEachFalselyReadyResource is a finding of its own, in each run.
func TestEachFalselyReadyResource(t *testing.T) {
	state := world.State{}
	for _, name := range []string{"victory", "surprise"} {
		subject, pod := frigate(), podOf("Frigate")
		subject.SetName(name)
		subject.SetUID(types.UID(name))
		subject.Object["status"] = map[string]any{"phase": "Ready"}
		pod.SetUID(types.UID(name + "-pod"))
		pod.SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID(name)}})
		state[world.Key{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: name}] = subject
		state[world.Key{Resource: "pods", Kind: "Pod", Namespace: "default", Name: name}] = pod
	}
	var found []string
	for _, o := range falseReady(0, state, func(string) bool { return true }) {
		found = append(found, o.Object)
	}
	if want := []string{"Frigate default/surprise", "Frigate default/victory"}; !slices.Equal(found, want) {
		t.Errorf("got %q, want %q", found, want)
	}
}

// TestUnfinishedAtRest has a custom resource that never gets ready, and is deleted at the end.
func TestUnfinishedAtRest(t *testing.T) {
	key := world.Key{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}
	for phase, want := range map[string][]string{"Ready": nil, "Pending": {"Frigate default/victory: status.phase is Pending"}} {
		c := sailing()
		for _, s := range c.reference[:2] {
			live := frigate()
			live.Object["status"] = map[string]any{"phase": phase}
			s.state = world.State{key: live}
		}
		expectLines(t, c.unfinishedAtRest(), want...)
	}
}
