// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"hash/maphash"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// trigger is something that may lead to reconciles, and is shared by all of those. Most events are of no interest to most
// controllers, so what there is to say about one is found out only if it does, and not at once: the journal has it until then.
type trigger struct {
	controller *Controller
	what       CauseType
	old, now   any
	seen       time.Time

	// *told is nil until the event is settled. Whoever reads it holds the controller's mutex, or settles the journal. The same
	// is true of places: for how many objects it waits.
	*told
	places int32
	// isNoted is whether it leads to something, and isListed whether it is or was in the journal.
	isNoted, isListed bool
}

// told is what there is to say about an event. It is not changed any more.
type told struct {
	cause  Cause
	object Object
	// generation is whether the object's generation changed, or its content if its kind has no generations, or the object is
	// new, or gone at once, or its deletion began, which deletion says.
	generation, deletion bool
	// created is when an object was created that is gone or is to be deleted.
	created time.Time
	// large are the hashes of those values that are not shown as a whole.
	large []largeChange
}

// happened is an event that a handler is to be shown.
func (c *Controller) happened(what CauseType, old, now any) trigger {
	c.passed.Add(1)
	return trigger{controller: c, what: what, old: old, now: now, seen: c.recorder.options.Clock.Now()}
}

// leadsTo is called whenever a handler asks for a reconcile, which can be after it has returned.
func (e *trigger) leadsTo(key waitKey, after time.Duration) {
	e.controller.add(key, e, after)
	e.controller.recorder.settleIfFull()
}

// waitKey names what is to be reconciled. Other is for requests of another type than controller-runtime's own.
type waitKey struct {
	types.NamespacedName

	other any
}

func keyOf[request comparable](item request) waitKey {
	if named, ok := any(item).(reconcile.Request); ok {
		return waitKey{NamespacedName: named.NamespacedName}
	}
	return waitKey{other: item}
}

// settle finds out what there is to say about an event, and lets go of its objects.
func (c *Controller) settle(e *trigger) {
	found := c.recorder.describe(e.what, e.old, e.now, e.seen)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	before := e.size()
	e.told = found
	e.old, e.now = nil, nil
	c.recorder.waitingBytes.Add(int64(e.places) * int64(e.size()-before))
}

// isSame says whether two are one and the same event, as two watches see it. The controller's mutex is held.
func (e *trigger) isSame(other *trigger) bool {
	if e == other {
		return true
	}
	if e.what != other.what || e.what != Created && e.what != Updated && e.what != Deleted {
		return false
	}
	uid, version := e.version()
	otherUID, otherVersion := other.version()
	return version != "" && version == otherVersion && uid != "" && uid == otherUID
}

// version names a version of an object. It is empty if the event says nothing new.
func (e *trigger) version() (uid types.UID, version string) {
	if e.told != nil {
		if e.cause.Type == Resynced {
			return "", ""
		}
		return types.UID(e.object.UID), e.cause.ResourceVersion
	}
	now, ok := asObject(e.now)
	if !ok {
		return "", ""
	}
	version = now.GetResourceVersion()
	if old, ok := asObject(e.old); ok && old.GetResourceVersion() == version {
		return "", ""
	}
	return now.GetUID(), version
}

// describe says what there is to say about an event.
func (r *Recorder) describe(what CauseType, oldObject, newObject any, seen time.Time) *told {
	e := &told{cause: Cause{Type: what, Seen: seen}}
	now, ok := asObject(newObject)
	if !ok {
		return e
	}
	e.object = r.name(now)
	e.cause.Object = &e.object
	e.cause.ResourceVersion = now.GetResourceVersion()
	old, hasOld := asObject(oldObject)
	switch {
	case what == Created:
		e.generation = true
		e.cause.By = creators(now)
	case what == Deleted:
		e.created = now.GetCreationTimestamp().Time
		// It went at once, so that nobody has seen its deletion begin. What has an owner goes with that.
		e.generation = now.GetDeletionTimestamp().IsZero() && metav1.GetControllerOfNoCopy(now) == nil
	case !hasOld:
	case old.GetResourceVersion() == now.GetResourceVersion() && now.GetResourceVersion() != "":
		e.cause.Type = Resynced
	default:
		e.deletion = old.GetDeletionTimestamp().IsZero() && !now.GetDeletionTimestamp().IsZero()
		if e.deletion {
			e.created = now.GetCreationTimestamp().Time
		}
		e.generation = e.deletion || old.GetUID() != now.GetUID() || old.GetGeneration() != now.GetGeneration()
		found := r.differ.compare(old, now, isSecret(&e.object))
		e.cause.Changes, e.cause.Changed, e.large = found.changes, found.changed, found.large
		e.cause.By = writersOf(old, now, &found, seen)
		if old.GetGeneration() == 0 && now.GetGeneration() == 0 {
			e.generation = e.generation || found.changesContent()
		}
	}
	return e
}

// bare is an event without what changed and by whom.
func (e *told) bare() *told {
	b := &told{cause: e.cause, object: e.object, generation: e.generation, deletion: e.deletion, created: e.created}
	b.cause.Changes, b.cause.By = nil, nil
	if b.cause.Object != nil {
		b.cause.Object = &b.object
	}
	return b
}

// hashes are those of the values before and after a change. They are not known of what is hidden, nor of values that are too
// large.
func (e *told) hashes(index int) (old, now uint64, known bool) {
	change := &e.cause.Changes[index]
	if change.Old == hidden || change.New == hidden {
		return 0, 0, false
	}
	for i := range e.large {
		if large := &e.large[i]; large.index == index {
			return large.old, large.now, large.known
		}
	}
	return maphash.String(hashSeed, change.Old), maphash.String(hashSeed, change.New), true
}

// size is about how many bytes an event takes. One that leads to several reconciles is counted for each.
func (e *trigger) size() int {
	const itself, change, writer = 400, 48, 80
	if e.told == nil {
		return itself
	}
	bytes := itself + len(e.cause.By)*writer
	for i := range e.cause.Changes {
		bytes += change + len(e.cause.Changes[i].Path) + len(e.cause.Changes[i].Old) + len(e.cause.Changes[i].New)
	}
	return bytes
}
