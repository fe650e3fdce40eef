// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import "time"

// echoes remembers the newest writes of reconciles, so that the events that they lead to can be recognised. Events often
// arrive before the answer to the write, so they are looked up late, when their own reconcile ends.
type echoes struct {
	written map[echoKey]*echo
	// order is a ring of the keys, oldest at next.
	order      []echoKey
	next, size int
	// managers are those that events of our own writes named, for telling users from controllers.
	managers map[string]bool
}

// echoKey names a version of an object, or its deletion.
type echoKey struct {
	// object is its UID, or its kind and name where a deletion was asked for without it.
	object          string
	resourceVersion string
}

// echo is a write that is remembered.
type echo struct {
	record uint64
	index  int
	by     objectKey
	// chain is how many reconciles in a row each were owed to the one before.
	chain int
	trace spanContext
}

// deleted stands in place of a resource version.
const deleted = "deleted"

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

// find returns the write that an event is the echo of; nil if there is none.
func (e *echoes) find(ev *trigger) *echo {
	object := ev.cause.Object
	if object == nil || ev.cause.Type == Listed || ev.cause.Type == Resynced || ev.cause.Type == Generic {
		return nil
	}
	if object.UID != "" {
		if found := e.written[echoKey{object.UID, ev.cause.ResourceVersion}]; found != nil && ev.cause.Type != Deleted {
			return found
		}
	}
	if ev.cause.Type != Deleted && !ev.deletion {
		return nil
	}
	if found := e.written[echoKey{object.UID, deleted}]; found != nil && object.UID != "" {
		return found
	}
	return e.written[echoKey{nameKey(object), deleted}]
}

// learn remembers under which name reconciles write. An event that has several writers does not tell which of them it was.
func (e *echoes) learn(by []Writer) {
	const enough = 256
	if len(by) == 1 && len(e.managers) < enough {
		e.managers[by[0].Manager] = true
	}
}

func nameKey(o *Object) string { return o.Kind + "." + o.Group + "/" + o.Namespace + "/" + o.Name }

// wrote notes a write of a reconcile. The resource version before the write may be unknown.
func (r *Recorder) wrote(p *pass, w *Write, before string, began time.Time, err error) {
	w.At = began
	w.Duration = max(0, r.options.Clock.Now().Sub(began))
	if err != nil {
		w.Error = shorten(err.Error(), 512)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	index := p.record.Written
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if err == nil && w.ResourceVersion != "" && w.Verb != verbDelete {
		key := echoKey{w.Object.UID, w.ResourceVersion}
		// If the version before is not known, it may be one that was written before.
		_, known := r.echoes.written[key]
		w.NoChange = before == w.ResourceVersion || before == "" && known && w.Verb != verbCreate
	}
	if p.ended {
		r.dropped.writes.Add(1)
		return
	}
	p.record.Written++
	if len(p.record.Writes) < r.options.MaxWrites {
		p.record.Writes = append(p.record.Writes, *w)
	}
	p.trace.wrote(w)
	if err == nil && !w.NoChange {
		r.remember(p, w, index)
	}
}

func (r *Recorder) remember(p *pass, w *Write, index int) {
	written := &echo{record: p.record.ID, index: index, by: p.object, chain: p.chain, trace: p.trace.context()}
	switch {
	case w.Verb == verbDeleteCollection:
		// Nobody says which objects it was.
	case w.Verb == verbDelete:
		key := echoKey{w.Object.UID, deleted}
		if w.Object.UID == "" {
			key.object = nameKey(&w.Object)
		}
		r.echoes.add(key, written)
	case w.Object.UID != "" && w.ResourceVersion != "":
		r.echoes.add(echoKey{w.Object.UID, w.ResourceVersion}, written)
	}
}
