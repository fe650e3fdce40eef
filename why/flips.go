// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"time"
)

// maxFlips bounds the fields per object that are watched for going back and forth.
const maxFlips = 64

// flipKey names a field of an object that led to reconciles.
type flipKey struct{ uid, path string }

// flip is a field that changed lately.
type flip struct {
	old, now string
	// turns are when it last went back to what it was before, oldest first.
	turns []time.Time
	last  time.Time
	// there and back are the writers of the last two changes.
	there, back []Writer
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
			if loop := r.noteFlip(h, e, &e.cause.Changes[i]); loop != nil {
				loops = append(loops, *loop)
			}
		}
	}
	return loops
}

func (r *Recorder) noteFlip(h *history, e *trigger, change *Change) *Finding {
	if change.Old == hidden || change.New == hidden {
		return nil // what is not known cannot be compared
	}
	key, now := flipKey{e.object.UID, change.Path}, e.cause.Seen
	f := h.flips[key]
	if f == nil || now.Sub(f.last) > r.options.LoopWindow {
		if h.flips == nil {
			h.flips = map[flipKey]*flip{}
		}
		if f == nil && len(h.flips) >= maxFlips && !h.forgetFlips(now, r.options.LoopWindow) {
			return nil
		}
		h.flips[key] = &flip{old: change.Old, now: change.New, last: now, there: e.cause.By}
		return nil
	}
	if e.cause.Seen.Equal(f.last) && change.New == f.now {
		return nil // the same event once more
	}
	if change.Old != f.now || change.New != f.old {
		*f = flip{old: change.Old, now: change.New, last: now, there: e.cause.By}
		return nil
	}
	f.turns = append(f.turns, now)
	f.turns = slices.DeleteFunc(f.turns, func(turn time.Time) bool { return now.Sub(turn) > r.options.LoopWindow })
	f.old, f.now, f.last = change.Old, change.New, now
	f.there, f.back = e.cause.By, f.there
	if len(f.turns) < r.options.LoopFlips-1 {
		return nil
	}
	if extra := len(f.turns) - r.options.LoopFlips; extra > 0 {
		f.turns = f.turns[extra:]
	}
	return &Finding{
		Type: Loop, Path: change.Path, Writers: distinct(f.back, f.there),
		Message: fmt.Sprintf("%s of %s goes back and forth between %s and %s: %s", change.Path, describeObject(e.cause.Object),
			orNothing(change.Old), orNothing(change.New), contestants(f.back, f.there)),
	}
}

// forgetFlips makes room, and says whether it did.
func (h *history) forgetFlips(now time.Time, window time.Duration) bool {
	for key, f := range h.flips {
		if now.Sub(f.last) > window {
			delete(h.flips, key)
		}
	}
	return len(h.flips) < maxFlips
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

func contestants(a, b []Writer) string {
	one, other := managers(a), managers(b)
	switch {
	case one == "" && other == "":
		return "nobody knows who writes it"
	case one == other:
		return one + " writes both"
	default:
		return orSomebody(one) + " and " + orSomebody(other) + " disagree"
	}
}

func orSomebody(text string) string {
	if text == "" {
		return "somebody"
	}
	return text
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
