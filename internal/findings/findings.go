// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package findings describes current problems in sentences: objects that are reconciled in a loop, that fail
// repeatedly, or that are reconciled suspiciously often. The page and the terminal show the same sentences.
//
// A Tracker gets the records of package why. Time is passed to At, so it depends only on these records.
package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/opdock/opdock/why"
)

// Type is the kind of a finding.
type Type string

const (
	// Loop is an object whose reconciles trigger each other.
	Loop Type = "loop"
	// Failing is an object whose latest reconciles have all failed.
	Failing Type = "failing"
	// Hot is an object that is reconciled very often, without a known loop.
	Hot Type = "hot"
)

// Finding is a current problem.
type Finding struct {
	Type       Type       `json:"type"`
	Controller string     `json:"controller"`
	Object     why.Object `json:"object"`
	// Sentence describes it in words.
	Sentence string `json:"sentence"`
	// Count is how many reconciles it has taken so far.
	Count int `json:"count"`
	// Since is when it began.
	Since time.Time `json:"since"`
}

const (
	// failures is from how many failed reconciles in a row on an object counts as failing.
	failures = 3
	// hot is from how many reconciles in a minute on an object counts as hot.
	hot = 60
	// A loop has ended when nothing of it was seen for this long, or for three times its usual interval if that is longer.
	leastQuiet, mostQuiet = 10 * time.Second, time.Minute
	// maxObjects is how many objects are remembered.
	maxObjects = 4096
)

// Tracker finds problems in records. A nil Tracker finds nothing. Its methods are safe for concurrent use.
type Tracker struct {
	mutex   sync.Mutex
	objects map[key]*object
}

type key struct{ controller, group, kind, namespace, name string }

// object is the state of one object.
type object struct {
	controller string
	object     why.Object
	last       time.Time

	minute minute
	// looped counts the reconciles of the last minute that were part of a loop, which is a separate finding.
	looped minute
	loop   loop

	failed      int // in a row
	failedSince time.Time
	failure     string
}

type loop struct {
	count       int
	since, last time.Time
	interval    time.Duration // between the latest of its reconciles, smoothed
	message     string
}

// NewTracker returns a tracker that has seen nothing yet.
func NewTracker() *Tracker { return &Tracker{objects: map[key]*object{}} }

// Reset forgets everything, for an operator that was started again.
func (t *Tracker) Reset() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	clear(t.objects)
}

// Add takes a reconcile into account. It does not keep the record.
func (t *Tracker) Add(r *why.Record) {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	k := key{r.Controller, r.Object.Group, r.Object.Kind, r.Object.Namespace, r.Object.Name}
	o := t.objects[k]
	if o == nil {
		if len(t.objects) >= maxObjects {
			t.forget()
		}
		o = &object{controller: r.Controller, object: r.Object}
		t.objects[k] = o
	}
	o.add(r)
}

// forget drops the half of the objects that was reconciled longest ago.
func (t *Tracker) forget() {
	keys := slices.SortedFunc(maps.Keys(t.objects), func(a, b key) int { return t.objects[a].last.Compare(t.objects[b].last) })
	for _, k := range keys[:len(keys)/2] {
		delete(t.objects, k)
	}
}

func (o *object) add(r *why.Record) {
	end := r.Start.Add(r.Duration)
	o.last = end
	o.minute.add(end, causeOf(r))
	switch r.Outcome {
	case why.Failed, why.Terminal, why.Panicked:
		if o.failed == 0 {
			o.failedSince = end
		}
		o.failed++
		o.failure = r.Error
	case why.Succeeded, why.Requeued:
		o.failed = 0
	}
	for _, f := range r.Findings {
		if f.Type == why.Loop {
			o.loop.add(end, f.Message)
			o.looped.add(end, "")
			break
		}
	}
}

func (l *loop) add(now time.Time, message string) {
	if l.over(now) {
		*l = loop{since: now}
	} else if gap := now.Sub(l.last); l.interval == 0 {
		l.interval = gap
	} else {
		l.interval = (3*l.interval + gap) / 4
	}
	l.count++
	l.last, l.message = now, message
}

func (l *loop) over(now time.Time) bool {
	return l.count == 0 || now.Sub(l.last) > min(max(leastQuiet, 3*l.interval), mostQuiet)
}

// At returns the findings at a time: loops first, then failures, each sorted by the number of reconciles.
func (t *Tracker) At(now time.Time) []Finding {
	if t == nil {
		return nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var found []Finding
	for _, o := range t.objects {
		if f, is := o.at(now); is {
			found = append(found, f)
		}
	}
	order := []Type{Loop, Failing, Hot}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Type), slices.Index(order, b.Type)), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Sentence, b.Sentence))
	})
	return found
}

func (o *object) at(now time.Time) (Finding, bool) {
	f := Finding{Controller: o.controller, Object: o.object}
	recent := o.minute.count(now)
	name := strings.TrimSpace(o.object.Kind + " " + o.object.Name)
	switch {
	case !o.loop.over(now):
		f.Type, f.Count, f.Since = Loop, o.loop.count, o.loop.since
		message := o.loop.message
		if strings.HasPrefix(message, "has ") {
			message = "it " + message
		}
		f.Sentence = fmt.Sprintf("%s is in a loop: %s. %s in the last minute.", name, strings.TrimSuffix(message, "."), reconciles(recent))
	case o.failed >= failures:
		f.Type, f.Count, f.Since = Failing, o.failed, o.failedSince
		f.Sentence = fmt.Sprintf("%s fails: the last %s ended with %q.", name, reconciles(o.failed), shorten(o.failure))
	case recent-o.looped.count(now) >= hot:
		f.Type, f.Count, f.Since = Hot, recent, o.last.Add(-time.Minute)
		f.Sentence = fmt.Sprintf("%s is reconciled very often: %s in the last minute, mostly because of %s.", name, reconciles(recent), o.minute.most())
	default:
		return f, false
	}
	return f, true
}

func reconciles(n int) string {
	if n == 1 {
		return "1 reconcile"
	}
	return fmt.Sprintf("%d reconciles", n)
}

// longest is how many characters of an error a sentence has.
const longest = 160

func shorten(text string) string {
	if runes := []rune(text); len(runes) > longest {
		return string(runes[:longest-1]) + "…"
	}
	return text
}

// causeOf names the first cause of a reconcile, without the name of its object.
func causeOf(r *why.Record) string {
	if len(r.Causes) == 0 {
		return "unknown causes"
	}
	cause := &r.Causes[0]
	switch {
	case cause.Type == why.Timer:
		return "timers that it has set"
	case cause.Type == why.Retried:
		return "retries"
	case cause.Object == nil:
		return "unknown causes"
	}
	text := map[why.CauseType]string{
		why.Created: "created", why.Updated: "changed", why.Deleted: "deleted", why.Resynced: "resynced", why.Listed: "listed", why.Generic: "signalled",
	}[cause.Type]
	text += " objects of kind " + cause.Object.Kind
	if len(cause.By) > 0 && cause.Type == why.Updated {
		text += " (by " + cause.By[0].Manager + ")"
	}
	return text
}
