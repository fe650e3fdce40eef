// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

// fleetWith is a Frigate and its Deployment, whose rollout is stuck if it is broken.
func fleetWith(conditions []any, status map[string]any, generation int64, broken bool) world.State {
	object := frigate()
	object.SetUID("u1")
	object.SetGeneration(generation)
	status["conditions"] = conditions
	object.Object["status"] = status
	workload := deployed()
	workload.SetUID("u2")
	workload.SetGeneration(1)
	workload.Object["spec"] = map[string]any{"replicas": int64(2)}
	updated := int64(2)
	if broken {
		updated = 1
	}
	workload.Object["status"] = map[string]any{
		"observedGeneration": int64(1), "replicas": int64(2), "readyReplicas": int64(2), "availableReplicas": int64(2), "updatedReplicas": updated,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}},
	}
	return world.State{
		{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}: object,
		{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "default", Name: "victory"}:      workload,
	}
}

func condition(status, message string) map[string]any {
	return map[string]any{"type": "Ready", "status": status, "message": message}
}

// TestWrongValuesAreReported is about what a custom resource says while one of its values breaks something.
func TestWrongValuesAreReported(t *testing.T) {
	ready, unready := []any{condition("True", "sails")}, []any{condition("False", "cannot sail")}
	invalid := seenMoment{Moment: Moment{Verb: "patch", Resource: "services", Name: "victory"}, status: http.StatusUnprocessableEntity}
	valid := seenMoment{Moment: Moment{Verb: "create", Resource: "services", Name: "victory"}, status: http.StatusCreated}
	for about, test := range map[string]struct {
		conditions []any
		status     map[string]any
		broken     bool
		writes     []seenMoment
		before     string // why the same write was refused before the change; empty if it was not
		dryRun     bool
		reconcile  string // of whom the write is
		events     []*corev1.Event
		want       string
	}{
		"all is well":                        {conditions: ready},
		"a workload is broken":               {conditions: ready, broken: true, want: "a wrong value breaks its workload"},
		"it says so":                         {conditions: unready, broken: true},
		"a message says so":                  {conditions: []any{condition("True", "1 of 2 pods sail")}, broken: true},
		"another condition says so":          {conditions: append([]any{map[string]any{"type": "Degraded", "status": "True"}}, ready...), broken: true},
		"a number says so":                   {conditions: ready, status: map[string]any{"updated": int64(1)}, broken: true},
		"the status only repeats the value":  {conditions: ready, status: map[string]any{"image": "no-such-image"}, broken: true, want: "a wrong value breaks its workload"},
		"it has not seen the change yet":     {conditions: ready, status: map[string]any{"observedGeneration": int64(1)}, broken: true},
		"a condition is about an older spec": {conditions: []any{map[string]any{"type": "Ready", "status": "True", "message": "sails", "observedGeneration": int64(1)}}, broken: true},
		"an event warns": {conditions: ready, broken: true, events: []*corev1.Event{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, Type: corev1.EventTypeWarning, LastTimestamp: metav1.Now(),
			InvolvedObject: corev1.ObjectReference{Kind: "Frigate", Namespace: "default", Name: "victory"},
		}}},
		"an event about a pod": {conditions: ready, broken: true, want: "a wrong value breaks its workload", events: []*corev1.Event{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, Type: corev1.EventTypeWarning, LastTimestamp: metav1.Now(),
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "victory-1"},
		}}},
		"a write is refused":             {conditions: ready, writes: []seenMoment{invalid}, reconcile: "victory", want: "the API server refuses"},
		"as before":                      {conditions: ready, writes: []seenMoment{invalid}, before: "spec.ports: Invalid value", reconcile: "victory"},
		"for another reason than before": {conditions: ready, writes: []seenMoment{invalid}, before: "spec.clusterIP: field is immutable", reconcile: "victory", want: "the API server refuses"},
		"of another custom resource":     {conditions: ready, writes: []seenMoment{invalid}, reconcile: "surprise"},
		"it was only asked for":          {conditions: ready, writes: []seenMoment{invalid}, reconcile: "victory", dryRun: true},
		"it found another way":           {conditions: ready, writes: []seenMoment{invalid, valid}, reconcile: "victory"},
		"a write is refused, it says so": {conditions: unready, writes: []seenMoment{invalid}, reconcile: "victory"},
	} {
		t.Run(about, func(t *testing.T) {
			if test.status == nil {
				test.status = map[string]any{}
			}
			c := sailing()
			r := &run{campaign: c, world: world.Of(fleetWith(test.conditions, test.status, 2, test.broken)), board: newSwitchboard(c.named)}
			objects := fake.NewClientBuilder()
			for _, e := range test.events {
				objects.WithObjects(e)
			}
			r.objects = objects.Build()
			m := &misuse{run: r, object: "Frigate default/victory", value: "no-such-image", before: fleetWith(ready, map[string]any{}, 1, false), since: time.Now().Add(-time.Minute)}
			if test.before != "" {
				earlier := invalid
				earlier.id = 1000
				m.refusedBefore = refusedFor(frigate(), []seenMoment{earlier}, []*lens.Event{
					{Reconcile: &lens.Reconcile{ID: 1, Namespace: "default", Name: "victory"}},
					request(lens.Request{ID: earlier.id, Verb: invalid.Verb, Status: invalid.status, Reconcile: 1, Message: test.before}),
				})
			}
			events := []*lens.Event{{Reconcile: &lens.Reconcile{ID: 1, Namespace: "default", Name: test.reconcile}}}
			for _, one := range test.writes {
				sent := call(one.Verb, lens.Resource{Resource: one.Resource, Name: one.Name}, nil)
				send(r.board, sent, one.status)
				events = append(events, request(lens.Request{ID: sent.Request.ID, Verb: one.Verb, Status: one.status, Reconcile: 1, DryRun: test.dryRun, Message: "spec.ports: Invalid value"}))
			}
			m.events = func() []*lens.Event { return events }
			wrong, err := m.unreported(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.want == "" && len(wrong) > 0:
				t.Errorf("got %+v", wrong[0])
			case test.want != "" && (len(wrong) != 1 || wrong[0].Verdict != "status" || !strings.Contains(wrong[0].Title, test.want)):
				t.Errorf("got %+v", wrong)
			}
		})
	}
}
