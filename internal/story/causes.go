// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// causes are what led to a reconcile, oldest first.
func (t *Teller) causes(p *pass, before *past) (causes []why.Cause) {
	since := time.Time{}
	if before != nil {
		since = before.began
	}
	var about, read []why.Cause
	for i := t.firstAfter(since); i < len(t.arrivals) && !t.arrivals[i].at.After(p.began); i++ {
		a := t.identify(p, &t.arrivals[i])
		switch {
		case p.isAbout(a.Object):
			about = append(about, t.causeOf(p, a))
		case p.hasRead(a.Object):
			read = append(read, t.causeOf(p, a))
		}
	}
	switch {
	case len(about) > 0 && before != nil && before.timer > 0 && p.isNearer(before.due(), about[len(about)-1].Seen):
		// Predicates ignored the echoes of its own writes: otherwise, it would have begun when they arrived. Other events
		// may have waited for a worker.
		others := slices.DeleteFunc(about, func(c why.Cause) bool { return t.isOwnEcho(p, &c) })
		return append([]why.Cause{{Type: why.Timer, Seen: before.due()}}, others...)
	case len(about) > 0:
		causes = about
	case before != nil && before.retry:
		return []why.Cause{{Type: why.Retried, Seen: before.ended}}
	case before != nil && before.timer > 0 && p.began.Sub(before.ended) >= before.timer-lateness:
		return []why.Cause{{Type: why.Timer, Seen: before.due()}}
	case len(read) > 0:
		causes = read
	default:
		if causes = t.inFlight(p, before); len(causes) == 0 {
			causes = []why.Cause{{Type: why.Unknown, Seen: p.began}}
		}
		return causes
	}
	if before != nil && before.retry {
		causes = append([]why.Cause{{Type: why.Retried, Seen: before.ended}}, causes...)
	}
	return causes
}

// inFlight returns the events that were on their way to the queue when the reconcile before began, and so may have led to
// the one that followed at once. The first of all events has led to the reconcile before.
func (t *Teller) inFlight(p *pass, before *past) (causes []why.Cause) {
	if before == nil || p.id == 0 || p.began.Sub(before.ended) > flight {
		return nil
	}
	since := before.began.Add(-flight)
	if before.cause.After(since) {
		since = before.cause
	}
	for i := t.firstAfter(since); i < len(t.arrivals) && !t.arrivals[i].at.After(before.began); i++ {
		if a := t.identify(p, &t.arrivals[i]); p.isAbout(a.Object) {
			causes = append(causes, t.causeOf(p, a))
		}
	}
	return causes
}

// hasNews reports whether something arrived between two times that is about the reconciled object, and that another client changed:
// no echo of the operator's writes, of which a record does not keep all, and nothing that was only shown again.
func (t *Teller) hasNews(p *pass, after, until time.Time) bool {
	for i := t.firstAfter(after); i < len(t.arrivals) && !t.arrivals[i].at.After(until); i++ {
		a := t.identify(p, &t.arrivals[i])
		isChange := a.relisted || !a.Initial && (a.Change == nil || !a.Change.None)
		if !isChange || a.Write != 0 || !p.isAbout(a.Object) {
			continue // like most of them; it takes longer to find the write behind one
		}
		if _, own := t.writeBehind(a); !own {
			return true
		}
	}
	return false
}

// isNearer reports whether a reconcile began nearer to the time that a timer was set to than to an earlier event. One that
// began before that time cannot be due to the timer.
func (p *pass) isNearer(due, event time.Time) bool {
	late := p.began.Sub(due)
	return late >= -lateness && event.Before(due) && late < p.began.Sub(event)
}

// firstAfter is the index of the first arrival after a time.
func (t *Teller) firstAfter(since time.Time) int {
	index, _ := slices.BinarySearchFunc(t.arrivals, since, func(a arrival, at time.Time) int {
		if a.at.After(at) {
			return 1
		}
		return -1
	})
	return index
}

// isAbout reports whether an object is the reconciled one, or belongs to it.
func (p *pass) isAbout(o *lens.Object) bool {
	own := &p.record.Object
	isKind := func(group, kind string) bool { return own.Kind == "" || own.Kind == kind && own.Group == group }
	if o.Name == p.name && o.Namespace == p.namespace && isKind(o.Group, o.Kind) {
		return true
	}
	if p.namespace != "" && o.Namespace != p.namespace {
		return false
	}
	return slices.ContainsFunc(o.Owners, func(owner lens.Owner) bool { return owner.Name == p.name && isKind(owner.Group, owner.Kind) })
}

// hasRead reports whether the reconcile read an object, or objects of its kind.
func (p *pass) hasRead(o *lens.Object) bool {
	return slices.ContainsFunc(p.reads, func(r timedRead) bool {
		return r.Kind == o.Kind && r.Group == o.Group && (r.Name == "" || r.Name == o.Name) && (r.Namespace == "" || r.Namespace == o.Namespace)
	})
}

func (t *Teller) causeOf(p *pass, a *arrival) why.Cause {
	object := objectOf(a.Object)
	c := why.Cause{Object: &object, ResourceVersion: a.Object.ResourceVersion, Seen: a.at}
	switch {
	case a.relisted:
		c.Type = why.Updated
	case a.Initial:
		c.Type = why.Listed
	case a.Type == "ADDED":
		c.Type = why.Created
	case a.Type == "DELETED":
		c.Type = why.Deleted
	case a.Change != nil && a.Change.None:
		c.Type = why.Resynced
	default:
		c.Type = why.Updated
	}
	if a.Change != nil && c.Type == why.Updated {
		c.Changes, c.Changed, c.By = a.Change.Fields, a.Change.Count(), a.Change.By
	}
	if ref, ok := t.writeBehind(a); ok && ref.Record != p.record.ID { // no reconcile is the cause of itself
		c.Write = &ref
	}
	return c
}

// reference is a write and when it was sent.
type reference struct {
	why.WriteRef
	at time.Time
}

// refer remembers which versions a write made. If another write was answered with the same version, it was first. But an object may
// end later than its deletion was requested.
func (t *Teller) refer(p *pass, e *lens.Event, ref why.WriteRef) {
	made := e.Request.Made()
	if len(made) == 0 {
		return
	}
	if len(t.refs) >= maxRefs {
		clear(t.refs) // echoes of earlier writes cannot be recognized
		clear(t.writers)
	}
	for _, version := range made {
		if _, known := t.refs[version]; !known || version.ResourceVersion == "" {
			t.refs[version] = reference{ref, e.At}
		}
	}
	t.writers[ref.Record] = p.subject
}

// writeBehind returns the write that an arrival is the echo of; false if there is none. The answer to a write may have a version that
// was there already, so what arrived before the write is not its echo.
func (t *Teller) writeBehind(a *arrival) (write why.WriteRef, ok bool) {
	for _, version := range a.Shows() {
		if found, known := t.refs[version]; known && !a.at.Before(found.at) {
			return found.WriteRef, true
		}
	}
	return write, false
}
