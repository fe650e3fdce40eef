// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"hash/maphash"
	"slices"
	"time"
)

// maxFlips bounds the fields per object that are watched for going back and forth, and flipsPerRecord those of all objects,
// together with the number of records.
const maxFlips, flipsPerRecord = 32, 4

// flipKey names a field of an object that led to reconciles.
type flipKey struct{ uid, path string }

// flip is a field that changed lately.
type flip struct {
	// old and now are hashes: the values are in the records, as long as those are kept.
	old, now uint64
	// turns are when it last went back to what it was before, oldest first.
	turns []time.Time
	last  time.Time
	// there and back are who made the last two changes.
	there, back mover
}

// mover is who changed a field.
type mover struct {
	by []Writer
	// controller is whose reconcile it was, for those that managed fields do not tell of.
	controller string
}

func (r *Recorder) moverOf(p *pass, e *trigger) mover {
	m := mover{by: e.cause.By}
	if len(m.by) == 0 {
		if written := r.echoes.find(e, p.record.ID); written != nil {
			m.controller = written.by.controller
		}
	}
	return m
}

// String is empty if nobody knows.
func (m mover) String() string {
	if m.controller != "" {
		return "the controller " + m.controller
	}
	return managers(m.by)
}

// findFlips notes what the events of a reconcile changed, and returns the fields that go back and forth. It finds them in
// the history of the object, which lasts as long as there are records of it. The recorder's mutex is held.
func (r *Recorder) findFlips(p *pass) (loops []Finding) {
	h := r.store.of(p.object)
	if h == nil {
		return nil // its first reconcile cannot be a loop, and the next one sees the next change
	}
	for _, e := range p.events {
		if e.cause.Type != Updated {
			continue
		}
		for i := range e.cause.Changes {
			if loop := r.noteFlip(p, h, e, &e.cause.Changes[i]); loop != nil {
				loops = append(loops, *loop)
			}
		}
	}
	return loops
}

func (r *Recorder) noteFlip(p *pass, h *history, e *trigger, change *Change) *Finding {
	if change.Old == hidden || change.New == hidden {
		return nil // what is not known cannot be compared
	}
	key, now := flipKey{e.object.UID, change.Path}, e.cause.Seen
	was, is := maphash.String(hashSeed, change.Old), maphash.String(hashSeed, change.New)
	f := h.flips[key]
	if f == nil {
		if r.store.hasRoomForFlip(h, now, r.options.LoopWindow) {
			h.flips[key] = &flip{old: was, now: is, last: now, there: r.moverOf(p, e)}
			r.store.flips++
		}
		return nil
	}
	if now.Equal(f.last) && is == f.now {
		return nil // the same event once more
	}
	if was != f.now || is != f.old || now.Sub(f.last) > r.options.LoopWindow {
		*f = flip{old: was, now: is, last: now, there: r.moverOf(p, e)}
		return nil
	}
	f.turns = append(f.turns, now)
	f.turns = slices.DeleteFunc(f.turns, func(turn time.Time) bool { return now.Sub(turn) > r.options.LoopWindow })
	f.old, f.now, f.last = was, is, now
	f.there, f.back = r.moverOf(p, e), f.there
	if len(f.turns) < r.options.LoopFlips-1 {
		return nil
	}
	if extra := len(f.turns) - r.options.LoopFlips; extra > 0 {
		f.turns = f.turns[extra:]
	}
	return &Finding{
		Type: Loop, Path: change.Path, Writers: distinct(f.back.by, f.there.by),
		Message: fmt.Sprintf("%s of %s goes back and forth between %s and %s: %s", change.Path, describeObject(e.cause.Object),
			orNothing(change.Old), orNothing(change.New), contestants(f.back, f.there)),
	}
}

var hashSeed = maphash.MakeSeed()

// hasRoomForFlip says whether one more field of an object can be watched, and makes room if it can.
func (s *store) hasRoomForFlip(h *history, now time.Time, window time.Duration) bool {
	if h.flips == nil {
		h.flips = map[flipKey]*flip{}
	}
	if len(h.flips) >= maxFlips {
		s.forgetFlips(h, now, window)
	}
	// Looking at all objects takes a while, so it is not done for each field that finds no room.
	limit := flipsPerRecord * s.maxRecords
	if s.flips >= limit && now.Sub(s.forgot).Abs() > window/10 {
		s.forgot = now
		for _, each := range s.byObject {
			s.forgetFlips(each, now, window)
		}
	}
	return len(h.flips) < maxFlips && s.flips < limit
}

func (s *store) forgetFlips(h *history, now time.Time, window time.Duration) {
	for key, f := range h.flips {
		if now.Sub(f.last).Abs() > window {
			delete(h.flips, key)
			s.flips--
		}
	}
}

func distinct(a, b []Writer) []Writer {
	all := slices.Clone(a)
	for _, writer := range b {
		if !slices.ContainsFunc(all, func(w Writer) bool { return w.Manager == writer.Manager && w.Subresource == writer.Subresource }) {
			all = append(all, writer)
		}
	}
	return all
}

func contestants(a, b mover) string {
	one, other := a.String(), b.String()
	switch {
	case one == "" && other == "":
		return "nobody knows who writes it"
	case one == other:
		return one + " writes both"
	case one == "" || other == "":
		// They may be the same: whoever updates an object leaves no trace of what is removed.
		return one + other + " writes it, and somebody unknown takes it back"
	default:
		return one + " and " + other + " disagree"
	}
}

func orSomebody(text string) string {
	if text == "" {
		return "somebody unknown"
	}
	return text
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
