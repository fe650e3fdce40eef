// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// vanished remembers the objects of a type that have left the cache: they were deleted, or have lost the label of the fleet. No pod
// and no status need name them. A reconcile follows at once, so they are only remembered for a while: their PodCluster may be gone
// as well.
type vanished struct {
	mutex sync.Mutex
	// names holds when each one vanished, by PodCluster.
	names map[types.UID]map[string]time.Time
	// removed holds when we have deleted one ourselves, which is no reason to search for it.
	removed map[types.UID]time.Time
}

const vanishedFor = 10 * time.Minute

// notice is a predicate that lets all events through.
func (v *vanished) notice() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(e event.DeleteEvent) bool {
			// One that was on its way out is gone. One that has only lost the label is reported as it was before.
			if e.Object.GetDeletionTimestamp().IsZero() && !v.forgetRemoval(e.Object.GetUID()) {
				v.add(e.Object, time.Now())
			}
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if owner := metav1.GetControllerOfNoCopy(e.ObjectOld); owner != nil && !isFoundBy(e.ObjectNew, owner) {
				v.add(e.ObjectOld, time.Now())
			}
			return true
		},
	}
}

// isFoundBy reports whether the PodCluster that an owner reference names still finds an object in the cache.
func isFoundBy(object client.Object, owner *metav1.OwnerReference) bool {
	return slices.ContainsFunc(clusterKeys(object), func(key string) bool { return key == ownerKey(owner.UID) || key == instanceKey(owner.Name) })
}

func (v *vanished) add(object client.Object, now time.Time) {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != "PodCluster" {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	isOver := func(at time.Time) bool { return now.Sub(at) > vanishedFor }
	maps.DeleteFunc(v.removed, func(_ types.UID, at time.Time) bool { return isOver(at) })
	maps.DeleteFunc(v.names, func(_ types.UID, names map[string]time.Time) bool {
		maps.DeleteFunc(names, func(_ string, at time.Time) bool { return isOver(at) })
		return len(names) == 0
	})
	if v.names == nil {
		v.names = map[types.UID]map[string]time.Time{}
	}
	if v.names[owner.UID] == nil {
		v.names[owner.UID] = map[string]time.Time{}
	}
	v.names[owner.UID][object.GetName()] = now
}

// noteRemoval is called before we delete an object ourselves.
func (v *vanished) noteRemoval(uid types.UID, now time.Time) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.removed == nil {
		v.removed = map[types.UID]time.Time{}
	}
	v.removed[uid] = now
}

// forgetRemoval reports whether a removal was noted. It is called when the object is gone, or if we could not delete it.
func (v *vanished) forgetRemoval(uid types.UID) (noted bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	_, noted = v.removed[uid]
	delete(v.removed, uid)
	return noted
}

func (v *vanished) of(owner types.UID) []string {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return slices.Collect(maps.Keys(v.names[owner]))
}

// forget is called when an object is known again, or does not exist.
func (v *vanished) forget(owner types.UID, name string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	delete(v.names[owner], name)
}
