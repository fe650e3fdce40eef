// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// echoes remembers the newest writes of reconciles to recognize the events that they cause. Events often arrive
// before the response to the write, so they are looked up when their own reconcile ends.
type echoes struct {
	written map[echoKey]*echo
	// order is a ring of the keys, oldest at next.
	order      []echoKey
	next, size int
	// managers are the names under which reconciles write, for telling users from controllers.
	managers map[string]bool
}

// echoKey names a version of an object, or its end.
type echoKey struct {
	// object is its UID, or its kind and name if a deletion was requested without the UID.
	object          string
	resourceVersion string
}

// echo is a write that is remembered.
type echo struct {
	record uint64
	index  int
	by     objectKey
	// at is when it was sent, and manager under which name; that may be unknown.
	at      time.Time
	manager string
	// chain is how many reconciles in a row each were owed to the one before.
	chain int
	trace spanContext
}

// deleted and finalized replace a resource version: for a requested deletion, and for the removal of the last
// finalizer, which completes a deletion.
const deleted, finalized = "deleted", "finalized"

func newEchoes(size int) *echoes {
	return &echoes{written: make(map[echoKey]*echo, 64), order: make([]echoKey, 0, 64), managers: map[string]bool{}, size: size}
}

func (e *echoes) add(key echoKey, written *echo) {
	if _, known := e.written[key]; !known {
		if len(e.order) < e.size {
			e.order = append(e.order, key)
		} else {
			delete(e.written, e.order[e.next])
			e.order[e.next] = key
			e.next = (e.next + 1) % e.size
		}
	}
	e.written[key] = written
}

// find returns the write that an event, which led to the reconcile with the given ID, is the echo of; nil if there is none.
func (e *echoes) find(ev *trigger, record uint64) *echo {
	object := ev.cause.Object
	if object == nil || ev.cause.Type == Listed || ev.cause.Type == Resynced || ev.cause.Type == Generic {
		return nil
	}
	if object.UID != "" {
		if ev.cause.Type != Deleted {
			found := e.written[echoKey{object.UID, ev.cause.ResourceVersion}]
			if found != nil && found.isBefore(ev, record) && found.isBy(ev) {
				return found
			}
		} else if found := e.written[echoKey{object.UID, finalized}]; found != nil && found.isBefore(ev, record) {
			return found
		}
	}
	if ev.cause.Type != Deleted && !ev.deletion {
		return nil
	}
	if object.UID != "" {
		if found := e.written[echoKey{object.UID, deleted}]; found != nil && found.isBefore(ev, record) {
			return found
		}
	}
	return e.findByName(ev, record)
}

// findByName returns the deletion that was requested by name. From then on it belongs to this object, because the
// next object of that name is another one.
func (e *echoes) findByName(ev *trigger, record uint64) *echo {
	key := echoKey{nameKey(ev.cause.Object), deleted}
	found := e.written[key]
	if found == nil || !found.isBefore(ev, record) || ev.created.After(found.at) {
		return nil
	}
	if uid := ev.cause.Object.UID; uid != "" {
		delete(e.written, key)
		e.add(echoKey{uid, deleted}, found)
	}
	return found
}

// isBefore reports whether a write can have caused an event. The response to a write that changes nothing has a
// version that another writer made. An event of that version from before the write is not its echo.
func (w *echo) isBefore(ev *trigger, record uint64) bool {
	return w.record < record && !ev.cause.Seen.Before(w.at)
}

// isBy reports whether a write can have made a version, by the names of its writers. This also identifies a write
// that changed nothing if the event arrives only after it.
func (w *echo) isBy(ev *trigger) bool {
	by := ev.cause.By
	return w.manager == "" || len(by) == 0 || slices.ContainsFunc(by, func(writer Writer) bool { return writer.Manager == w.manager })
}

// learn remembers the field manager of reconciles if the write did not name it. An event with several writers does
// not identify it.
func (e *echoes) learn(written *echo, by []Writer) {
	if written.manager == "" && len(by) == 1 {
		e.learnManager(by[0].Manager)
	}
}

func (e *echoes) learnManager(name string) {
	const enough = 256
	if len(e.managers) < enough {
		e.managers[name] = true
	}
}

func nameKey(o *Object) string { return o.Kind + "." + o.Group + "/" + o.Namespace + "/" + o.Name }

// sentWrite is a write with additional facts that are not published.
type sentWrite struct {
	Write

	// before is the resource version that the object had; it may be unknown.
	before string
	// ended is whether the object is gone because the write removed the last finalizer of an object that was being
	// deleted.
	ended bool
}

// sent writes a write of a reconcile down, which was answered just now.
func (p *pass) sent(w *sentWrite, err error) {
	r := p.controller.recorder
	w.Duration = max(0, r.options.Clock.Now().Sub(w.At))
	if err != nil {
		w.Error = errorText(err, 512)
	}
	r.write(line{pass: p, write: w})
}

// wrote analyzes a write.
func (r *Recorder) wrote(p *pass, w *sentWrite) {
	if p.ended {
		r.dropped.writes++
		return
	}
	if w.Error == "" && w.ResourceVersion != "" && w.Verb != verbDelete && w.Verb != verbCreate {
		w.NoChange = !w.ended && (w.before == w.ResourceVersion || r.wasThere(p, &w.Write))
	}
	index := p.record.Written
	p.record.Written++
	p.controller.totals.wrote(&w.Write)
	if len(p.writes) < r.options.MaxWrites {
		p.writes = append(p.writes, w)
	}
	if w.Error == "" && !w.NoChange {
		r.remember(p, &w.Write, index, w.ended)
	}
}

// wasThere reports whether the version with which a write was answered is older than the write: a reconcile has written it, or
// this one is owed to an event that had it.
func (r *Recorder) wasThere(p *pass, w *Write) bool {
	if _, known := r.echoes.written[echoKey{w.Object.UID, w.ResourceVersion}]; known {
		return true
	}
	return slices.ContainsFunc(p.events, func(e *trigger) bool {
		return e.cause.ResourceVersion == w.ResourceVersion && e.object.UID == w.Object.UID
	})
}

// isDeletion reports whether a write requests the deletion of an object. An eviction is a deletion that may be
// refused.
func (w *Write) isDeletion() bool {
	return w.Verb == verbDelete || w.Verb == verbCreate && w.Subresource == "eviction"
}

func (r *Recorder) remember(p *pass, w *Write, index int, ended bool) {
	if w.Manager != "" {
		r.echoes.learnManager(w.Manager)
	}
	written := &echo{
		record: p.record.ID, index: index, by: p.object, at: w.At, manager: w.Manager, chain: p.chain, trace: p.trace.context(),
	}
	switch {
	case w.Verb == verbDeleteCollection:
		// The response does not name the deleted objects.
	case w.isDeletion():
		key := echoKey{w.Object.UID, deleted}
		if w.Object.UID == "" {
			key.object = nameKey(&w.Object)
		}
		r.echoes.add(key, written)
	case w.Object.UID == "" || w.ResourceVersion == "":
	case ended:
		r.echoes.add(echoKey{w.Object.UID, finalized}, written)
	default:
		r.echoes.add(echoKey{w.Object.UID, w.ResourceVersion}, written)
	}
}

// hasEnded reports whether the object in the response to a write is gone: its deletion was requested without a
// grace period, and it has no finalizers.
func hasEnded(object interface {
	GetDeletionTimestamp() *metav1.Time
	GetDeletionGracePeriodSeconds() *int64
	GetFinalizers() []string
}) bool {
	grace := object.GetDeletionGracePeriodSeconds()
	return !object.GetDeletionTimestamp().IsZero() && len(object.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// isHeld reports whether an object is a namespace that stays because of the finalizers in its spec: it has them until
// it is empty. Metadata alone does not show them.
func isHeld(name *Object, object client.Object) bool {
	if name.Kind != "Namespace" || name.Group != "" {
		return false
	}
	switch object := object.(type) {
	case *corev1.Namespace:
		return len(object.Spec.Finalizers) > 0
	case *unstructured.Unstructured:
		held, _, _ := unstructured.NestedSlice(object.Object, "spec", "finalizers")
		return len(held) > 0
	}
	return true
}
