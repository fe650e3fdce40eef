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

// A pod that is recreated from another template differs from the one before.
func TestPodsOfAnEarlierTemplate(t *testing.T) {
	onDelete := map[string]any{"updateStrategy": map[string]any{"type": "OnDelete"}}
	for name, test := range map[string]struct {
		kind         string
		spec, status map[string]any
		want         bool
	}{
		"an update that waits":     {"StatefulSet", onDelete, map[string]any{"currentRevision": "a", "updateRevision": "b"}, true},
		"an update that was done":  {"StatefulSet", onDelete, map[string]any{"currentRevision": "z", "updateRevision": "a"}, false},
		"another strategy":         {"StatefulSet", map[string]any{}, map[string]any{"currentRevision": "a", "updateRevision": "b"}, false},
		"a DaemonSet that waits":   {"DaemonSet", onDelete, map[string]any{"updatedNumberScheduled": int64(1), "desiredNumberScheduled": int64(3)}, true},
		"a DaemonSet that is done": {"DaemonSet", onDelete, map[string]any{"updatedNumberScheduled": int64(3), "desiredNumberScheduled": int64(3)}, false},
		"a ReplicaSet":             {"ReplicaSet", map[string]any{}, map[string]any{"replicas": int64(1)}, false},
	} {
		workload := &unstructured.Unstructured{Object: map[string]any{"kind": test.kind, "spec": test.spec, "status": test.status}}
		workload.SetUID("u2")
		pod := podOf("Any")
		pod.SetLabels(map[string]string{"controller-revision-hash": "a"})
		c := sailing()
		c.reference[1].state = world.State{{Group: "apps", Kind: test.kind, Namespace: "default", Name: "victory"}: workload}
		if left := len(c.replaceable(1, []*unstructured.Unstructured{pod})); (left == 0) != test.want {
			t.Errorf("%s: %d pods are deleted or evicted", name, left)
		}
	}
}

// All pods are gone, but what else there is must not be replaced.
func TestWhatMayBeReplacedWithPods(t *testing.T) {
	for _, variant := range []string{deletePods, evictPods, "never-ready"} {
		r := &run{campaign: sailing(), world: world.Of(nil)}
		d, err := breakPods(r, &Plan{Family: "pods", Variant: variant, Step: 2})
		if err != nil {
			t.Fatal(err)
		}
		if d.may == nil || d.may(world.Key{Group: "apps", Resource: "statefulsets"}, podOf("")) {
			t.Errorf("%s: a StatefulSet may be replaced", variant)
		}
	}
}

// One pod of each workload is evicted, but none that runs to completion: its failure may be what counts.
func TestPodsThatAreEvicted(t *testing.T) {
	pod := func(name, controller string, uid types.UID) *unstructured.Unstructured {
		one := podOf(controller)
		one.SetName(name)
		if controller != "" {
			one.SetOwnerReferences([]metav1.OwnerReference{{Kind: controller, Name: string(uid), UID: uid, Controller: new(true)}})
		}
		return one
	}
	pods := []*unstructured.Unstructured{
		pod("web-b", "ReplicaSet", "web"), pod("web-a", "ReplicaSet", "web"), pod("db-0", "StatefulSet", "db"), pod("once-a", "Job", "once"), pod("stranger", "", ""),
		pod("backup", "Backup", "backup"),
	}
	pods[5].Object["spec"] = map[string]any{"restartPolicy": "Never"}
	var evicted []string
	for _, one := range oneOfEach(sailing().evictable(1, slices.Clone(pods))) {
		evicted = append(evicted, one.GetName())
	}
	expectLines(t, evicted, "db-0", "web-a")

	gone := pods[1]
	gone.SetUID("evicted")
	e := &evictions{evicted: map[types.UID]bool{"evicted": true}, running: map[string]int{"web": 2}}
	for name, test := range map[string]struct {
		object *unstructured.Unstructured
		pods   []*unstructured.Unstructured
		want   bool
	}{
		"it was replaced":       {gone, []*unstructured.Unstructured{pods[0], pod("web-c", "ReplicaSet", "web")}, true},
		"it was not replaced":   {gone, []*unstructured.Unstructured{pods[0], pod("db-1", "StatefulSet", "db")}, false},
		"it was not evicted":    {pods[0], []*unstructured.Unstructured{pods[0], pod("web-c", "ReplicaSet", "web")}, false},
		"no pod of it is there": {gone, nil, false},
	} {
		if got := e.isLeftover(test.object, test.pods); got != test.want {
			t.Errorf("%s: it is a leftover: %v", name, got)
		}
	}
}
