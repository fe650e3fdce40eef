// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ownWrites remembers which version of each child is what we wrote ourselves. The pass that wrote it has seen it in the
// server's answer, so that there is no need to look at the owner again when the watch brings it, too.
type ownWrites struct {
	mutex    sync.Mutex
	versions map[types.UID]string
}

func (o *ownWrites) add(child client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.versions == nil {
		o.versions = map[types.UID]string{}
	}
	o.versions[child.GetUID()] = child.GetResourceVersion()
}

func (o *ownWrites) has(child client.Object) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.versions[child.GetUID()] == child.GetResourceVersion()
}

func (o *ownWrites) forget(child client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.versions, child.GetUID())
}

// IgnoreOwnWrites is for children that are applied: it drops the events of our own writes, if their answer has arrived
// before them.
func (r *Reconciler[T]) IgnoreOwnWrites() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.IsInInitialList || !r.own.has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return !r.own.has(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.own.forget(e.Object)
			return true
		},
	}
}
