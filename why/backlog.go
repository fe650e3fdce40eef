// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"sync"
	"time"
)

// backlog holds events, reconciles and writes that are not processed yet. Handlers, reconciles and clients must not
// be slowed down, so they only add what cannot be determined later, in order. Processing many lines together is
// faster than one by one, because the data stays in the processor's caches.
//
// A backlog is processed when it is long enough, after backlogPatience, and before anything reads the records, so readers see
// no difference. A writer that finds it full processes it first.
type backlog struct {
	// settle is the recorder's method.
	settle func()
	// maxEvents bounds the events, because their objects are kept until they are compared.
	maxEvents int

	mutex  sync.Mutex
	lines  []line
	events int
	// woken is whether a goroutine is about to settle the backlog, due whether a timer will after backlogPatience, and
	// awaited whether a reader waits for the next record.
	woken, due, awaited bool
}

// line is an event that triggers a reconcile, the start of a reconcile, one of its writes, or its end.
type line struct {
	event *trigger
	key   waitKey       // of the event
	after time.Duration // delay of the reconcile, from the event on

	pass  *pass
	write *sentWrite
	ended bool
}

const (
	backlogPatience = time.Second
	maxLines        = 1024
)

// write adds a line. If the backlog is full, the caller processes it first.
func (r *Recorder) write(l line) {
	if r.backlog.add(l) {
		r.settle()
	}
}

// add adds a line, and schedules the processing of the backlog. It returns whether the backlog is full and must be
// processed at once.
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

// await registers a reader that waits for the next record, and came is called when there is one.
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

// take returns all lines. It reuses the memory of the lines that were taken before.
func (b *backlog) take(before []line) (taken []line) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	taken = b.lines
	b.lines, b.events, b.woken = before[:0], 0, false
	return taken
}

// settle processes the backlog.
func (r *Recorder) settle() { r.readSettled(func() {}) }

// readSettled processes the backlog, and then calls a reader of the records with the mutex held.
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

// tellAll logs and traces the reconciles that have ended, in order. Loggers and tracers are called without the
// mutex, because they may read records.
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
