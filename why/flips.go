// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/why/diff"
)

// maxFlips bounds the fields per object that are watched for going back and forth, and flipsPerRecord those of all objects,
// together with the number of records.
const maxFlips, flipsPerRecord = 32, 4

// flipKey names a field of an object that led to reconciles.
type flipKey struct{ uid, path string }

// flip is a field that changed lately.
type flip struct {
	// old and now are hashes. The values are in the records while these are kept.
	old, now uint64
	// version is the object's after the last change, because an event can come twice.
	version string
	// turns holds the times at which it last returned to its previous value, oldest first.
	turns []time.Time
	last  time.Time
	// there and back are who made the last two changes.
	there, back mover
}

// mover is who changed a field.
type mover struct {
	by []Writer
	// controller is the name of the reconciling controller, for writers that events do not identify.
	controller string
}

// isSame reports whether two writers are the same, or may be the same because they are unknown.
func (m mover) isSame(other mover) bool {
	one, two := m.String(), other.String()
	return one == two || one == "" || two == ""
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

// String is empty if the writers are unknown.
func (m mover) String() string {
	if m.controller != "" {
		return "controller " + m.controller
	}
	return managers(m.by)
}

// swing is a field that goes back and forth between the same two writers.
type swing struct {
	object  *Object
	change  *Change
	between string
	writers []Writer
	// more is how many other fields of the object do so as well.
	more int
}

func (w *swing) finding() Finding {
	fields, verb := w.change.Path, "goes"
	if w.more > 0 {
		fields, verb = fmt.Sprintf("%s and %s", fields, numbered(w.more, "more field")), "go"
	}
	return Finding{Type: Loop, Path: w.change.Path, Writers: w.writers, Message: fmt.Sprintf("%s of %s %s back and forth between %s and %s: %s",
		fields, describeObject(w.object), verb, orNothing(w.change.Old), orNothing(w.change.New), w.between)}
}

// peaceful is the number of reconciles of an object that are not watched, from its first record on.
// Most objects have no more than these: they are created and become ready. A loop shows up again
// later.
const peaceful = 2

// findFlips records what the events of a reconcile changed, and returns the fields that go back and
// forth. It uses the history of the object, which is kept as long as its records.
func (r *Recorder) findFlips(p *pass) (loops []Finding) {
	h := r.store.of(p.object)
	if h == nil || h.reconciles < peaceful {
		return nil
	}
	var swings []swing
	for _, e := range p.events {
		if e.cause.Type != Updated {
			continue
		}
		for i := range e.cause.Changes {
			f := r.noteFlip(p, h, e, i)
			if f == nil {
				continue
			}
			found := swing{object: e.cause.Object, change: &e.cause.Changes[i], between: contestants(f.back, f.there), writers: distinct(f.back.by, f.there.by)}
			same := func(w swing) bool { return w.object.UID == found.object.UID && w.between == found.between }
			if known := slices.IndexFunc(swings, same); known < 0 {
				swings = append(swings, found)
			} else if swings[known].change.Path != found.change.Path {
				swings[known].more++
			}
		}
	}
	for i := range swings {
		loops = append(loops, swings[i].finding())
	}
	return loops
}

// noteFlip records one change of an event, and returns the field if it is now a loop.
func (r *Recorder) noteFlip(p *pass, h *history, e *trigger, index int) *flip {
	change := &e.cause.Changes[index]
	was, is, known := e.hashes(index)
	if !known {
		return nil // unknown values cannot be compared
	}
	key, now := flipKey{e.object.UID, change.Path}, e.cause.Seen
	fresh := flip{old: was, now: is, last: now, version: e.cause.ResourceVersion}
	f := h.flips[key]
	if f == nil {
		if r.store.hasRoomForFlip(h, now, r.options.LoopWindow) {
			fresh.there = r.moverOf(p, e)
			key.path = strings.Clone(key.path) // it is a part of the text of the event, which is not to be kept for it
			h.flips[key] = &fresh
			r.store.flips++
		}
		return nil
	}
	if e.cause.ResourceVersion == f.version && is == f.now {
		return nil // the same event once more
	}
	// The same change again means that another writer has reverted it in between, without an event that triggered
	// a reconcile.
	again := was == f.old && is == f.now
	fresh.there = r.moverOf(p, e)
	if !again && (was != f.now || is != f.old) || now.Sub(f.last) > r.options.LoopWindow {
		*f = fresh
		return nil
	}
	fresh.back, fresh.turns = f.there, f.turns
	if again {
		fresh.back = h.writerOf(e.object.UID, diff.IsWithin(change.Path, "status"), f.last, now)
		fresh.turns = append(fresh.turns, now)
	}
	fresh.turns = append(fresh.turns, now)
	fresh.turns = slices.DeleteFunc(fresh.turns, func(turn time.Time) bool { return now.Sub(turn) > r.options.LoopWindow })
	if extra := len(fresh.turns) - r.options.LoopFlips; extra > 0 {
		fresh.turns = fresh.turns[extra:]
	}
	*f = fresh
	// If a single writer changes a status back and forth, something else goes back and forth.
	if len(f.turns) < r.options.LoopFlips-1 || diff.IsWithin(change.Path, "status") && f.there.isSame(f.back) {
		return nil
	}
	return f
}

// writerOf returns the controller whose reconciles of the object have changed another object, or its
// status, within a period. It is empty if there is none.
func (h *history) writerOf(uid string, status bool, from, to time.Time) (m mover) {
	const enough = 16
	k := h.last
	for i := 0; i < enough && k != nil && uid != ""; i++ {
		for j := range k.record.Writes {
			w := &k.record.Writes[j]
			if w.Object.UID != uid || w.NoChange || w.Error != "" || (w.Subresource == "status") != status || w.At.Before(from) || w.At.After(to) {
				continue
			}
			m.controller = k.record.Controller
			if w.Manager != "" {
				m.by = []Writer{{Manager: w.Manager, Subresource: w.Subresource, Time: w.At}}
			}
			return m
		}
		k = k.earlier
	}
	return m
}

// hasRoomForFlip reports whether one more field of an object can be watched, and makes room if it can.
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
		return "the writers are unknown"
	case one == other:
		return one + " writes both values"
	case one == "" || other == "":
		// They may be the same writer: an update leaves no trace of removed fields.
		return one + other + " writes it, and an unknown writer reverts it"
	default:
		return one + " and " + other + " keep overwriting each other"
	}
}

func numbered(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func orSomebody(text string) string {
	if text == "" {
		return "an unknown writer"
	}
	return text
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
