// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"sync"
	"time"
)

// journal is what has happened and is not told yet. Handlers, reconciles and clients are in the midst of something else, so
// they only write down what nobody knows later, in the order in which it happens. What it means is found out for many events
// at once, which takes a fraction of the time: what is needed for it is at hand then, in the caches of the processor.
//
// It is settled when there is enough, after journalPatience, and before anybody reads what is recorded. So nobody can see the
// difference, except by the time it takes.
type journal struct {
	// settle is that of the recorder.
	settle func()
	// maxEvents bounds the events, because their objects are kept until they are compared.
	maxEvents int

	mutex  sync.Mutex
	events []*trigger
	lines  []line
	// woken is whether somebody is about to settle it, due whether somebody will after journalPatience, and awaited whether
	// somebody waits for the next record.
	woken, due, awaited bool
}

// line is a write of a reconcile, or its end if there is none.
type line struct {
	pass  *pass
	write *sentWrite
}

const (
	journalPatience = time.Second
	maxLines        = 1024
)

// addEvent adds an event that is to be compared.
func (j *journal) addEvent(e *trigger) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if !e.isListed {
		e.isListed = true
		j.events = append(j.events, e)
		j.wake(false)
	}
}

func (j *journal) addWrite(p *pass, w *sentWrite) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = append(j.lines, line{p, w})
	j.wake(false)
}

func (j *journal) addEnd(p *pass) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = append(j.lines, line{pass: p})
	j.wake(j.awaited)
}

// wake sees to it that somebody settles it. The mutex is held.
func (j *journal) wake(now bool) {
	switch {
	case j.woken:
	case now || len(j.events) >= j.maxEvents/2 || len(j.lines) >= maxLines/2:
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
}

// isFull says whether there is so much that whoever has added to it has to settle it, rather than add more.
func (j *journal) isFull() bool {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return len(j.events) >= j.maxEvents || len(j.lines) >= maxLines
}

// await says that somebody waits for the next record.
func (j *journal) await() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.awaited = true
	if len(j.lines) > 0 {
		j.wake(true)
	}
}

// came says that there is a record for whoever has waited for one.
func (j *journal) came() {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.awaited = false
}

// take returns what there is, and goes on with what was taken before and is not needed any more.
func (j *journal) take(spare settled) (taken settled) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	taken = settled{j.events, j.lines}
	j.events, j.lines, j.woken = spare.events, spare.lines, false
	return taken
}

// settled is a part of the journal that is being settled.
type settled struct {
	events []*trigger
	lines  []line
}

// settle tells what is in the journal: it compares the objects of events, and completes the records of reconciles that have
// ended.
func (r *Recorder) settle() {
	for _, p := range r.settleInOrder() {
		p.finishTrace()
		r.log(p)
	}
}

// settleInOrder returns the reconciles that have ended.
func (r *Recorder) settleInOrder() (ended []*pass) {
	r.settling.Lock()
	defer r.settling.Unlock()
	part := r.journal.take(r.spare)
	for _, e := range part.events {
		e.controller.settle(e)
	}
	for _, each := range part.lines {
		if each.write != nil {
			r.wrote(each.pass, each.write)
		} else {
			r.complete(each.pass)
			ended = append(ended, each.pass)
		}
	}
	clear(part.events)
	clear(part.lines)
	r.spare = settled{part.events[:0], part.lines[:0]}
	return ended
}

// settleIfFull is for those who add to the journal: whoever is too fast for it has to help.
func (r *Recorder) settleIfFull() {
	if r.journal.isFull() {
		r.settle()
	}
}
