// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

// delayed is a queue that notes what is added.
type delayed struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	added []time.Duration
}

func (q *delayed) AddAfter(_ reconcile.Request, after time.Duration) {
	q.added = append(q.added, after)
}

// edit changes the object on the server as another writer does, and returns whether the event triggers a reconcile.
func (w *world) edit(change func(*robotv1.Robot)) bool {
	w.t.Helper()
	before := w.get()
	after := before.DeepCopy()
	change(after)
	if err := w.Client.Status().Update(w.t.Context(), after); err != nil {
		w.t.Fatal(err)
	}
	return w.whenStatusIsEdited().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

func sayReady(r *robotv1.Robot) {
	meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Sure"})
}

func TestAnEditedStatusIsCorrected(t *testing.T) {
	w := newWorld(t, oldRobot())
	queue := &delayed{}
	w.bystanders = &bystanders{queue: queue}
	w.step = func(*Pass, *robotv1.Robot) error { return Stalled("Broken", errors.New("it is broken")) }
	before := w.get()
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if w.whenStatusIsEdited().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: w.get()}) {
		t.Error("our own write is taken for an edit")
	}
	for name, change := range map[string]func(*robotv1.Robot){
		"verdict": sayReady, "a number": func(r *robotv1.Robot) { r.Status.AvailableReplicas++ },
		"removed": func(r *robotv1.Robot) { r.Status = robotv1.RobotStatus{} },
	} {
		w.clock.SetTime(w.clock.Now().Add(time.Minute))
		if !w.edit(change) {
			t.Errorf("%s: the edit is not noticed", name)
		}
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if ready := meta.FindStatusCondition(w.get().Status.Conditions, "Ready"); ready == nil || ready.Reason != "Broken" {
			t.Errorf("%s: got %+v", name, ready)
		}
	}
	// A writer that answers each write is answered once a second.
	if w.edit(sayReady) || len(queue.added) != 1 || queue.added[0] != editPause {
		t.Errorf("added %v", queue.added)
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if w.edit(func(*robotv1.Robot) {}) {
		t.Error("a change that is not about the status is noticed")
	}
}

// A writer that answers each write at once.
func TestEditsOfAStatusInARow(t *testing.T) {
	var (
		e     editedStatuses
		key   = types.NamespacedName{Name: "r"}
		start = time.Now()
	)
	for i, test := range []struct{ at, want time.Duration }{
		{0, 0}, {100, 900}, {500, 500}, {1001, 999}, {1500, 500}, {2001, 999}, {10000, 0},
	} {
		if got := e.pause(key, start.Add(test.at*time.Millisecond)); got != test.want*time.Millisecond {
			t.Errorf("edit %d: waits for %v", i, got)
		}
	}
}

// The watch may be faster than the response.
func TestEventsOfStatusesBeforeTheResponse(t *testing.T) {
	for _, isEdited := range []bool{false, true} {
		w := newWorld(t, oldRobot())
		queue := &delayed{}
		w.bystanders = &bystanders{queue: queue}
		before := w.get()
		server := w.Client.(client.WithWatch)
		w.Client = interceptor.NewClient(server, interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if isEdited && w.edit(sayReady) {
					t.Error("the edit does not wait for the response")
				}
				if err := c.SubResource(name).Patch(ctx, o, p, opts...); err != nil {
					return err
				}
				if w.whenStatusIsEdited().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: o}) {
					t.Error("our own write is taken for an edit")
				}
				return nil
			},
		})
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		if got := len(queue.added) == 1; got != isEdited {
			t.Errorf("edited: %v, added: %v", isEdited, queue.added)
		}
	}
}

// The rest of the status is held, but a verdict is not.
func TestAnEditedVerdictIsCorrectedDuringAPause(t *testing.T) {
	w := newWorld(t, robot())
	w.Paced = true
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	w.step = func(_ *Pass, r *robotv1.Robot) error {
		r.Status.Replicas = 7 // what is held
		return Hold(time.Minute)
	}
	hold := func(writes int) {
		t.Helper()
		result, err := w.reconcile()
		if err != nil || result.RequeueAfter != time.Minute || len(w.writes) != writes {
			t.Errorf("back after %v (%v), with %d writes", result.RequeueAfter, err, len(w.writes))
		}
		live := w.get()
		ready := meta.FindStatusCondition(live.Status.Conditions, "Ready")
		if len(live.Status.Conditions) != 1 || ready == nil || ready.Status != metav1.ConditionTrue || live.Status.ObservedGeneration != 1 || live.Status.Replicas != 0 {
			t.Errorf("the status is %+v", live.Status)
		}
	}
	hold(0)
	for _, edit := range []func(*robotv1.RobotStatus){
		func(s *robotv1.RobotStatus) { s.Conditions[0].Status = metav1.ConditionFalse },
		func(s *robotv1.RobotStatus) { s.Conditions = nil },
		func(s *robotv1.RobotStatus) { s.ObservedGeneration = 0 },
		func(s *robotv1.RobotStatus) {
			s.Conditions = append(s.Conditions, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "Forged"})
		},
	} {
		live := w.get()
		edit(&live.Status)
		if err := w.Client.Status().Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		hold(1)
		hold(0)
	}
}

// A verdict that was never written belongs to a status that was never written either.
func TestAVerdictThatWasNotWrittenIsNotRestored(t *testing.T) {
	w := newWorld(t, robot())
	w.Paced = true
	whole := w.Client
	w.Client = interceptor.NewClient(whole.(client.WithWatch), interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("the server is gone")
		},
	})
	if _, err := w.reconcile(); err == nil {
		t.Fatal("the status was written")
	}
	w.Client = whole
	w.step = func(*Pass, *robotv1.Robot) error { return Hold(time.Minute) }
	if _, err := w.reconcile(); err != nil || len(w.writes) != 0 {
		t.Errorf("there were the writes %v (%v)", w.writes, err)
	}
}
