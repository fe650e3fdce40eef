// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// editPause is how soon after another one an edit of a status can trigger a reconcile, so a writer that answers each of our
// writes does not keep the controller busy.
const editPause = time.Second

// editedStatuses remembers when each object was last reconciled because another writer changed its status, or when it will
// be.
type editedStatuses struct {
	mutex sync.Mutex
	last  map[types.NamespacedName]time.Time
}

// pause returns how long a reconcile because of an edit has to wait.
func (e *editedStatuses) pause(key types.NamespacedName, now time.Time) time.Duration {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.last == nil {
		e.last = map[types.NamespacedName]time.Time{}
	}
	last := e.last[key]
	switch next := last.Add(editPause); {
	case last.After(now): // one is due already
	case next.After(now):
		last = next
	default:
		last = now
	}
	e.last[key] = last
	return last.Sub(now)
}

func (e *editedStatuses) forget(key types.NamespacedName) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	delete(e.last, key)
}

// whenStatusIsEdited selects updates of the status that we did not make. An event that may be our own write waits for the
// response.
func (r *Reconciler[T]) whenStatusIsEdited() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if r.own.has(e.ObjectNew) || sameStatus(e.ObjectOld, e.ObjectNew) {
				return false
			}
			return !r.own.postpone(e.ObjectNew, func() { r.requeue(e.ObjectNew, r.pauseAfterEdit(e.ObjectNew)) }) && r.isNextEdit(e.ObjectNew)
		},
	}
}

// isNextEdit reports whether an edit triggers a reconcile now. If not, it does so later.
func (r *Reconciler[T]) isNextEdit(object client.Object) bool {
	wait := r.pauseAfterEdit(object)
	if wait > 0 {
		r.requeue(object, wait)
	}
	return wait == 0
}

func (r *Reconciler[T]) pauseAfterEdit(object client.Object) time.Duration {
	return r.edited.pause(client.ObjectKeyFromObject(object), r.Clock.Now())
}

// requeue adds an object to the queue of the controller, which the source of bystanders has got.
func (r *Reconciler[T]) requeue(object client.Object, after time.Duration) {
	r.bystanders.enqueue(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}, after)
}

func sameStatus(a, b client.Object) bool {
	return equality.Semantic.DeepEqual(statusOf(a), statusOf(b))
}

// statusOf returns the status of an object, which all kinds have.
func statusOf(object client.Object) any {
	status := reflect.ValueOf(object).Elem().FieldByName("Status")
	if !status.IsValid() {
		return nil
	}
	return status.Addr().Interface()
}
