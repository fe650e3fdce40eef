// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ownWrites remembers which version of each object is what we wrote ourselves. The pass that wrote it has seen it in the
// server's answer, so that there is no need to look at the owner again when the watch brings it, too. And a cache that
// has not seen it yet is not to be believed: what we found there has been changed since, by ourselves.
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

// supersedes says whether we have written the object since the version that is given, which then comes from a cache that
// lags behind. Versions of an object can be compared: they are numbers that grow.
func (o *ownWrites) supersedes(object client.Object) bool {
	o.mutex.Lock()
	written, known := o.versions[object.GetUID()]
	o.mutex.Unlock()
	if !known {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), written)
	return err == nil && order < 0
}

func (o *ownWrites) forget(uid types.UID) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.versions, uid)
}

// IgnoreOwnWrites is for children that are applied: it drops the events of our own writes, if their answer has arrived
// before them.
func (r *Reconciler[T]) IgnoreOwnWrites() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.IsInInitialList || !r.own.has(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return !r.own.has(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			r.own.forget(e.Object.GetUID())
			return true
		},
	}
}
