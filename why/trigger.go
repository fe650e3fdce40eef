// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/diff"
)

// trigger is something that may lead to reconciles, and is shared by all of those. Most events are of no interest to most
// controllers, so what there is to say about those of watches is found out only if they do.
type trigger struct {
	controller *Controller
	what       CauseType
	old, now   any
	seen       time.Time
	// ofSource is whether it stands for all requests of a source that has no events.
	ofSource bool

	// The rest belongs to who settles the backlog. isNoted is whether it leads to something, and *told is nil until it is told.
	isNoted bool
	*told
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
	large []diff.LargeChange
}

// happened is an event that a handler is to be shown.
func (c *Controller) happened(what CauseType, old, now any) trigger {
	e := trigger{controller: c, what: what, old: old, now: now, seen: c.recorder.options.Clock.Now()}
	if what == Generic {
		// Objects from a cache are not changed by anybody, but nobody knows where this one comes from.
		c.recorder.tell(&e)
	}
	return e
}

// leadsTo is called whenever a handler asks for a reconcile, which can be after it has returned. It comes before the queue is
// told: the other way round, the reconcile could begin without its cause.
func (e *trigger) leadsTo(key waitKey, after time.Duration) {
	r := e.controller.recorder
	if e.ofSource {
		e.controller.seen.Add(1)
		another := e.controller.happened(Generic, nil, nil)
		e = &another
	}
	if after > 0 {
		after += r.options.Clock.Since(e.seen)
	}
	r.write(line{event: e, key: key, after: after})
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

// tell finds out what there is to say about an event, and lets go of its objects. Types that panic when they are looked at are
// none of a recorder's business: nothing is said about them.
func (r *Recorder) tell(e *trigger) {
	if e.told != nil {
		return
	}
	defer func() {
		if recover() != nil {
			e.told = &told{cause: Cause{Type: e.what, Seen: e.seen}}
		}
		e.old, e.now = nil, nil
	}()
	e.told = r.describe(e.what, e.old, e.now, e.seen)
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
		found := r.differ.Compare(old, now, isSecret(&e.object))
		e.cause.Changes, e.cause.Changed, e.large = found.Changes, found.Changed, found.Large
		e.cause.By = writersOf(old, now, &found, seen)
		if old.GetGeneration() == 0 && now.GetGeneration() == 0 {
			e.generation = e.generation || found.ChangesContent()
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
	if change.Old == diff.Hidden || change.New == diff.Hidden {
		return 0, 0, false
	}
	for i := range e.large {
		if large := &e.large[i]; large.Index == index {
			return large.Old, large.Now, large.Known
		}
	}
	return diff.Hash(change.Old), diff.Hash(change.New), true
}

// size is about how many bytes an event takes. One that leads to several reconciles is counted for each.
func (e *told) size() int {
	const itself, change, writer = 400, 48, 80
	bytes := itself + len(e.cause.By)*writer
	for i := range e.cause.Changes {
		bytes += change + len(e.cause.Changes[i].Path) + len(e.cause.Changes[i].Old) + len(e.cause.Changes[i].New)
	}
	return bytes
}
