// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

// TestStepsThatCanBeTakenBack is about steps after which an object would be another one.
func TestStepsThatCanBeTakenBack(t *testing.T) {
	victory := sceneObject("Frigate", "victory")
	other, going := victory.DeepCopy(), victory.DeepCopy()
	other.SetUID(types.UID("another"))
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	surprise, crew := sceneObject("Frigate", "surprise"), sceneObject("Secret", "crew")
	for name, test := range map[string]struct {
		before, after world.State
		step          Step
		want          bool
	}{
		"changes":                    {sceneState(victory), sceneState(victory), Step{}, true},
		"brings another":             {sceneState(victory), sceneState(victory, surprise, crew), Step{}, true},
		"deletes it":                 {sceneState(victory), sceneState(), Step{}, false},
		"deletes what it refers to":  {sceneState(victory, crew), sceneState(victory), Step{}, false},
		"is deleting it":             {sceneState(victory), sceneState(going), Step{}, false},
		"creates it again":           {sceneState(victory), sceneState(other), Step{}, false},
		"deletes everything":         {sceneState(), sceneState(), Step{Ends: true}, false},
		"changes objects of others":  {sceneState(victory), sceneState(victory), Step{Elsewhere: true}, false},
		"the operator deletes a pod": {sceneState(victory, sceneObject("Pod", "victory-1")), sceneState(victory), Step{}, true},
	} {
		c := sceneOf([]*unstructured.Unstructured{victory, surprise}, []*unstructured.Unstructured{crew}, test.before, test.after)
		c.o.Steps[1] = test.step
		if c.canUndo(1) != test.want || c.canUndo(0) {
			t.Errorf("%s: got %v, and %v for the first step", name, c.canUndo(1), c.canUndo(0))
		}
		c.reference[1].delivered = []lens.Resource{frigates}
		if planned := len(unobservedPlans(c)) > 0; planned != test.want {
			t.Errorf("%s: planned: %v", name, planned)
		}
	}
}

func TestTakingBack(t *testing.T) {
	with := func(object *unstructured.Unstructured, value string) *unstructured.Unstructured {
		object = object.DeepCopy()
		object.Object["data"] = map[string]any{"value": value}
		object.SetLabels(map[string]string{"value": value, "operator": value})
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: object.GetAPIVersion(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata": {"f:labels": {"f:value": {}}}}`),
		}})
		return object
	}
	victory, surprise, crew, ports := sceneObject("Frigate", "victory"), sceneObject("Frigate", "surprise"), sceneObject("ConfigMap", "crew"), sceneObject("ConfigMap", "ports")
	c := sceneOf([]*unstructured.Unstructured{victory, surprise}, []*unstructured.Unstructured{crew, ports})
	objects := fake.NewClientBuilder().WithObjects(with(victory, "new"), with(crew, "new"), with(surprise, "new"), with(ports, "new")).Build()
	r := &run{campaign: c, objects: objects}
	if err := r.takeBack(t.Context(), []*unstructured.Unstructured{with(crew, "old"), with(victory, "old")}); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*unstructured.Unstructured{victory, crew} {
		live, err := r.live(t.Context(), one)
		if err != nil {
			t.Fatal(err)
		}
		if value, _, _ := unstructured.NestedString(live.Object, "data", "value"); value != "old" || live.GetLabels()["value"] != "old" {
			t.Errorf("%s is not restored: %v", sceneKey(one), live.Object)
		}
		if live.GetLabels()["operator"] != "new" {
			t.Errorf("the operator's label of %s is restored", sceneKey(one))
		}
	}
	for _, one := range []*unstructured.Unstructured{surprise, ports} {
		if _, err := r.live(t.Context(), one); err == nil {
			t.Errorf("%s is still there", sceneKey(one))
		}
	}
	if err := r.takeBack(t.Context(), []*unstructured.Unstructured{surprise}); err == nil {
		t.Error("an object that is gone was restored")
	}
}

func told(watch uint64, kind, name, change string) *lens.Event {
	return &lens.Event{Delivery: &lens.Delivery{Watch: watch, Type: change, Resource: lens.Resource{Version: "v1", Resource: kind}, Object: &lens.Object{Namespace: "default", Name: name}}}
}

func TestWhatPassesWithinAStep(t *testing.T) {
	initial, bookmark := told(1, "pods", "a", "ADDED"), told(1, "pods", "", "BOOKMARK")
	initial.Delivery.Initial = true
	for name, test := range map[string]struct {
		events []*lens.Event
		want   passing
	}{
		"one event":          {[]*lens.Event{initial, bookmark, {Read: &lens.Read{}}, told(1, "pods", "a", "MODIFIED")}, passing{events: 1}},
		"of two objects":     {[]*lens.Event{told(1, "pods", "a", "MODIFIED"), told(1, "pods", "b", "DELETED")}, passing{events: 2}},
		"of two watches":     {[]*lens.Event{told(1, "pods", "a", "MODIFIED"), told(2, "pods", "a", "MODIFIED")}, passing{events: 1}},
		"changed twice":      {[]*lens.Event{told(1, "pods", "a", "ADDED"), told(1, "pods", "a", "MODIFIED")}, passing{events: 2, again: true}},
		"deleted in the end": {[]*lens.Event{told(1, "pods", "a", "MODIFIED"), told(1, "pods", "a", "DELETED"), told(1, "services", "a", "ADDED")}, passing{events: 2, again: true, gone: true}},
	} {
		if got := passingIn(test.events, nil)[lens.Resource{Resource: "pods"}]; got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestPlansOfWhatIsNotSeen(t *testing.T) {
	victory := sceneObject("Frigate", "victory")
	pods, services := lens.Resource{Resource: "pods"}, lens.Resource{Resource: "services"}
	plans := func(finalizers ...string) (got []string) {
		live := victory.DeepCopy()
		live.SetFinalizers(finalizers)
		c := sceneOf([]*unstructured.Unstructured{victory}, nil, sceneState(live), sceneState())
		c.o.Steps[1].Ends = true
		for _, s := range c.reference {
			s.delivered = []lens.Resource{frigates, pods, services}
			s.passing = map[lens.Resource]passing{frigates: {events: 1}, pods: {events: 2, again: true, gone: true}, services: {events: 2}}
		}
		for _, p := range append(unobservedPlans(c), stalePlans(c)...) {
			if p.Variant != "lag" {
				got = append(got, summary(p))
			}
		}
		slices.Sort(got)
		return got
	}
	want := []string{"0 compressed pods", "0 lag-after pods", "0 lag-after services", "1 compressed pods", "1 lag-after pods", "1 lag-after services", "1 recreate-unseen frigates"}
	if got := plans(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// Only the operator removes its finalizer, and for that it must see the deletion.
	if got := plans("sea.example.com/anchor"); !slices.Equal(got, want[:6]) {
		t.Errorf("with a finalizer, got %q", got)
	}
}

// watched passes an event of a watch through a gate, and returns what becomes of it.
func watched(g *gate, r *run, watch uint64, kind string) <-chan lens.Verdict {
	verdict := make(chan lens.Verdict, 1)
	call := &lens.Call{Request: lens.Request{ID: watch, Verb: "watch", Resource: lens.Resource{Group: frigates.Group, Version: "v1", Resource: frigates.Resource}}}
	go func() { verdict <- g.deliver(r)(context.Background(), call, &lens.Frame{Type: kind}) }()
	return verdict
}

func isHeld(verdict <-chan lens.Verdict) bool {
	select {
	case <-verdict:
		return false
	case <-time.After(50 * time.Millisecond):
		return true
	}
}

func TestAWatchThatLagsAfterItsFirstEvent(t *testing.T) {
	r := &run{board: newSwitchboard(func(m Moment) Moment { return m })}
	for _, late := range []bool{true, false} {
		g := newGate(frigates)
		g.late = late
		for _, watch := range []uint64{1, 2} {
			for _, kind := range []string{"BOOKMARK", "MODIFIED"} {
				if held := isHeld(watched(g, r, watch, kind)); held == late {
					t.Errorf("late %v: %s of watch %d is held: %v", late, kind, watch, held)
				}
			}
			if !isHeld(watched(g, r, watch, "MODIFIED")) || !isHeld(watched(g, r, watch, "BOOKMARK")) {
				t.Errorf("late %v: later events of watch %d are not held", late, watch)
			}
		}
		g.release()
		if isHeld(watched(g, r, 1, "MODIFIED")) {
			t.Errorf("late %v: an event is held after the gate was opened", late)
		}
	}
}

// TestEachWatchListsAgain has an operator with two watches of a resource: each must miss what happened.
func TestEachWatchListsAgain(t *testing.T) {
	r := &run{board: newSwitchboard(func(m Moment) Moment { return m }), campaign: sceneOf(nil, nil)}
	d, err := overlook(r, &Plan{Family: "unobserved", Variant: compressed, Resource: &frigates})
	if err != nil {
		t.Fatal(err)
	}
	resume := func() int32 {
		again := call("watch", lens.Resource{Group: frigates.Group, Resource: frigates.Resource}, nil)
		again.Request.Query = &lens.Query{ResourceVersion: "17"}
		if v := d.faults.any(t.Context(), again); v.Answer != nil {
			return v.Answer.Code
		}
		return 0
	}
	if got := resume(); got != 0 {
		t.Errorf("a watch that did not end is answered with %d", got)
	}
	var ends []chan lens.Verdict
	for watch := range uint64(2) {
		end := make(chan lens.Verdict, 1)
		request := &lens.Call{Request: lens.Request{ID: watch, Verb: "watch", Resource: frigates}}
		go func() { end <- d.faults.deliver(context.Background(), request, &lens.Frame{Type: "DELETED"}) }()
		ends = append(ends, end)
		if !isHeld(end) {
			t.Error("an event is not held")
		}
	}
	if err := d.heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, end := range ends {
		if v := <-end; v.Action != lens.End {
			t.Errorf("the watch does not end: %+v", v)
		}
	}
	for i, want := range []int32{http.StatusGone, http.StatusGone, 0} {
		if got := resume(); got != want {
			t.Errorf("watch %d is answered with %d, want %d", i, got, want)
		}
	}
}
