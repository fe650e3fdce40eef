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

// trigger is something that may cause reconciles, and is shared by all of them. Most events do not matter to
// most controllers, so watch events are analyzed only if they cause a reconcile.
type trigger struct {
	controller *Controller
	what       CauseType
	old, now   any
	seen       time.Time
	// ofSource is whether it represents all requests of a source without events.
	ofSource bool

	// The rest belongs to the goroutine that settles the backlog. isNoted is whether it causes a
	// reconcile, and told is nil until it is analyzed.
	isNoted bool
	*told
}

// told is the analysis of an event. It is immutable.
type told struct {
	cause  Cause
	object Object
	// generation is whether the object's generation changed (its content, if its kind has no
	// generations), or the object is new or was removed at once, or its deletion started. deletion
	// is set in the last case.
	generation, deletion bool
	// created is the creation time of an object that was deleted or is being deleted.
	created time.Time
	// large holds the hashes of values that are shown shortened.
	large []diff.LargeChange
}

// happened is an event that a handler is to be shown.
func (c *Controller) happened(what CauseType, old, now any) trigger {
	e := trigger{controller: c, what: what, old: old, now: now, seen: c.recorder.options.Clock.Now()}
	if what == Generic {
		// Objects from a cache are not modified, but the origin of this one is unknown.
		c.recorder.tell(&e)
	}
	return e
}

// leadsTo is called whenever a handler requests a reconcile, possibly after it has returned. It is called
// before the request is added to the queue; otherwise, the reconcile could start without its cause.
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

// waitKey identifies what is to be reconciled. Other is for requests of a type other than
// controller-runtime's.
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

// tell analyzes an event, and releases its objects. If a type panics during the analysis, the event has no
// details.
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

// describe returns the analysis of an event.
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
		// It was removed at once, so the start of its deletion was not seen. An object with an owner was
		// garbage-collected.
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

// hashes returns the hashes of the values before and after a change. They are unknown for hidden values and
// for values that are too large.
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

// size is the approximate size of an event in bytes. An event that causes several reconciles is counted for
// each.
func (e *told) size() int {
	const itself, change, writer = 400, 48, 80
	bytes := itself + len(e.cause.By)*writer
	for i := range e.cause.Changes {
		bytes += change + len(e.cause.Changes[i].Path) + len(e.cause.Changes[i].Old) + len(e.cause.Changes[i].New)
	}
	return bytes
}
