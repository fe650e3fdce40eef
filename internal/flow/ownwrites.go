// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// ownWrites remembers which versions of each object we wrote ourselves. The reconcile that wrote them has seen them
// in the server's responses, so their watch events need not trigger another reconcile. And if a cache does not have
// the last one yet, it is stale because of our own write.
type ownWrites struct {
	mutex sync.Mutex
	// versions are the last few of each object, the newest at the end.
	versions map[types.UID][]string
	// underWay holds the writes without a response yet, with the watch events of their objects meanwhile.
	underWay map[childKey][]postponed
	// hidden holds the types whose children admission hides from the caches, by namespace. After a create of one, a read
	// must not wait for the cache.
	hidden map[childKey]bool
}

// maxOwnVersions is the maximum number of writes of one object in a reconcile: take over the fields, patch one, and
// apply the rest. An older version that the watch delivers late costs one reconcile.
const maxOwnVersions = 3

// childKey names an object that may not have a UID yet.
type childKey struct {
	kind reflect.Type
	name types.NamespacedName
}

func keyOf(child client.Object) childKey {
	return childKey{reflect.TypeOf(child), client.ObjectKeyFromObject(child)}
}

// postponed is an event that may or may not be the echo of our own write.
type postponed struct {
	version string
	handle  func()
}

// begin is called before a child is written. The function that it returns is to be called with the server's answer, or
// with nil if there is none.
func (o *ownWrites) begin(child client.Object, key types.NamespacedName) func(answer client.Object) {
	under := childKey{reflect.TypeOf(child), key}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.underWay == nil {
		o.underWay = map[childKey][]postponed{}
	}
	o.underWay[under] = []postponed{}
	return func(answer client.Object) {
		if answer != nil {
			o.add(answer)
		}
		o.mutex.Lock()
		meanwhile := o.underWay[under]
		delete(o.underWay, under)
		o.mutex.Unlock()
		for _, news := range meanwhile {
			if answer == nil || news.version != answer.GetResourceVersion() {
				news.handle()
			}
		}
	}
}

// typeOf names the children of the object's type in its namespace.
func typeOf(child client.Object) childKey {
	return childKey{reflect.TypeOf(child), types.NamespacedName{Namespace: child.GetNamespace()}}
}

// hides is called if the caches do not hold a child that was written.
func (o *ownWrites) hides(child client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.hidden == nil {
		o.hidden = map[childKey]bool{}
	}
	o.hidden[typeOf(child)] = true
}

// shown is called if they do.
func (o *ownWrites) shown(child client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.hidden) > 0 {
		delete(o.hidden, typeOf(child))
	}
}

func (o *ownWrites) isHidden(child client.Object) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.hidden) > 0 && o.hidden[typeOf(child)]
}

// postpone keeps an event until the response to a write of the same object has arrived. It returns false if no write
// is in progress.
func (o *ownWrites) postpone(child client.Object, handle func()) bool {
	key := keyOf(child)
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if _, writing := o.underWay[key]; !writing {
		return false
	}
	o.underWay[key] = append(o.underWay[key], postponed{child.GetResourceVersion(), handle})
	return true
}

func (o *ownWrites) add(child client.Object) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.versions == nil {
		o.versions = map[types.UID][]string{}
	}
	known := o.versions[child.GetUID()]
	o.versions[child.GetUID()] = append(slices.Clone(known[max(0, len(known)-maxOwnVersions+1):]), child.GetResourceVersion())
}

func (o *ownWrites) has(child client.Object) bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return slices.Contains(o.versions[child.GetUID()], child.GetResourceVersion())
}

// supersedes reports whether we have written the object since the given version, which then comes from a stale cache.
// Versions of an object can be compared: they are increasing numbers.
func (o *ownWrites) supersedes(object client.Object) bool {
	o.mutex.Lock()
	versions := o.versions[object.GetUID()]
	o.mutex.Unlock()
	if len(versions) == 0 {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), versions[len(versions)-1])
	return err == nil && order < 0
}

func (o *ownWrites) forget(uid types.UID) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.versions, uid)
}

// IgnoreOwnWrites is for children that are applied: it drops the events of our own writes, if the response arrived
// before them. Owner handles late responses.
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
