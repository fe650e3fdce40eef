// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"sync"
	"time"
)

// backlog holds events, reconciles and writes that happened and are not processed yet. Handlers, reconciles and clients
// are busy with something else, so they only add what cannot be found out later, in the order in which it happens.
// Processing many lines together takes less time than processing each one: what it needs is in the processor's caches.
//
// A backlog is processed when it is long enough, after backlogPatience, and before anything reads the records, so readers see
// no difference. A writer that finds it full processes it first.
type backlog struct {
	// settle is that of the recorder.
	settle func()
	// maxEvents bounds the events, because their objects are kept until they are compared.
	maxEvents int

	mutex  sync.Mutex
	lines  []line
	events int
	// woken is whether somebody is about to settle it, due whether somebody will after backlogPatience, and awaited whether
	// somebody waits for the next record.
	woken, due, awaited bool
}

// line is an event that leads to a reconcile, the begin of a reconcile, a write of it, or its end.
type line struct {
	event *trigger
	key   waitKey       // of the event
	after time.Duration // from the event on, when it wants its reconcile

	pass  *pass
	write *sentWrite
	ended bool
}

const (
	backlogPatience = time.Second
	maxLines        = 1024
)

// write adds a line. Whoever is too fast has to help.
func (r *Recorder) write(l line) {
	if r.backlog.add(l) {
		r.settle()
	}
}

// add adds a line, and sees to it that somebody settles the backlog. It returns whether there is so much in it that this has to
// be done before anything else.
func (b *backlog) add(l line) (isFull bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.lines = append(b.lines, l)
	if l.event != nil {
		b.events++
	}
	switch {
	case b.events >= b.maxEvents || len(b.lines) >= maxLines:
		return true
	case b.woken:
	case b.awaited && l.ended || b.events >= b.maxEvents/2 || len(b.lines) >= maxLines/2:
		b.woken = true
		go b.settle()
	case !b.due:
		b.due = true
		time.AfterFunc(backlogPatience, func() {
			b.mutex.Lock()
			b.due = false
			b.mutex.Unlock()
			b.settle()
		})
	}
	return false
}

// await says that somebody waits for the next record, and came that there is one.
func (b *backlog) await() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.awaited = true
	if !b.woken && slices.ContainsFunc(b.lines, func(l line) bool { return l.ended }) {
		b.woken = true
		go b.settle()
	}
}

func (b *backlog) came() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.awaited = false
}

// take returns what there is. What was taken before is used again.
func (b *backlog) take(before []line) (taken []line) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	taken = b.lines
	b.lines, b.events, b.woken = before[:0], 0, false
	return taken
}

// settle tells what is in the backlog.
func (r *Recorder) settle() { r.readSettled(func() {}) }

// readSettled tells what is in the backlog, and lets somebody read what is recorded then, with the mutex held.
func (r *Recorder) readSettled(read func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.settleLocked()
	read()
	if len(r.untold) > 0 {
		go r.tellAll()
	}
}

// settleLocked needs the mutex, and so does all that it calls.
func (r *Recorder) settleLocked() {
	for _, c := range r.controllers {
		c.seenBefore = c.seen.Load()
	}
	r.lines = r.backlog.take(r.lines)
	for i := range r.lines {
		switch l := &r.lines[i]; {
		case l.event != nil:
			l.event.controller.add(l.key, l.event, l.after)
		case l.write != nil:
			r.wrote(l.pass, l.write)
		case l.ended:
			r.complete(l.pass)
		default:
			r.explain(l.pass)
		}
	}
	clear(r.lines)
	for _, c := range r.controllers {
		c.countFiltered()
	}
}

// tellAll logs and traces the reconciles that have ended, in their order. Who reads logs and spans is called without the mutex,
// and may ask for records.
func (r *Recorder) tellAll() {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mutex.Lock()
	ended := r.untold
	r.untold = nil
	r.mutex.Unlock()
	for _, p := range ended {
		p.finishTrace()
		r.log(p)
	}
}
