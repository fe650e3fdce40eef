// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"sync"
	"time"
)

// journal is what has happened and is not told yet. Handlers, reconciles and clients are in the midst of something else, so
// they only write down what nobody knows later, in the order in which it happens. What it means is found out for many lines
// at once, which takes less time: what is needed for it is at hand then, in the caches of the processor.
//
// It is settled when there is enough of it, after journalPatience, and before anybody reads what is recorded. So whoever reads
// sees no difference. Whoever adds to a journal that is full has to settle it first.
type journal struct {
	// settle is that of the recorder.
	settle func()
	// maxEvents bounds the events, because their objects are kept until they are compared.
	maxEvents int

	mutex  sync.Mutex
	lines  []line
	events int
	// woken is whether somebody is about to settle it, due whether somebody will after journalPatience, and awaited whether
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
	journalPatience = time.Second
	maxLines        = 1024
)

// write adds a line. Whoever is too fast has to help.
func (r *Recorder) write(l line) {
	if r.journal.add(l) {
		r.settle()
	}
}

// add adds a line, and sees to it that somebody settles the journal. It returns whether there is so much in it that this has to
// be done before anything else.
func (j *journal) add(l line) (isFull bool) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = append(j.lines, l)
	if l.event != nil {
		j.events++
	}
	switch {
	case j.events >= j.maxEvents || len(j.lines) >= maxLines:
		return true
	case j.woken:
	case j.awaited && l.ended || j.events >= j.maxEvents/2 || len(j.lines) >= maxLines/2:
		j.woken = true
		go j.settle()
	case !j.due:
		j.due = true
		time.AfterFunc(journalPatience, func() {
			j.mutex.Lock()
			j.due = false
			j.mutex.Unlock()
			j.settle()
		})
	}
	return false
}

// await says that somebody waits for the next record, and came that there is one.
func (j *journal) await() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.awaited = true
	if !j.woken && slices.ContainsFunc(j.lines, func(l line) bool { return l.ended }) {
		j.woken = true
		go j.settle()
	}
}

func (j *journal) came() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.awaited = false
}

// take returns what there is. What was taken before is used again.
func (j *journal) take(before []line) (taken []line) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	taken = j.lines
	j.lines, j.events, j.woken = before[:0], 0, false
	return taken
}

// settle tells what is in the journal.
func (r *Recorder) settle() { r.readSettled(func() {}) }

// readSettled tells what is in the journal, and lets somebody read what is recorded then, with the mutex held.
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
	r.lines = r.journal.take(r.lines)
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
