// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

const (
	// firstRetry is how long controller-runtime waits before it retries for the first time; each time it is twice as long, up to
	// longestRetry.
	firstRetry   = 5 * time.Millisecond
	longestRetry = 1000 * time.Second
	// fewRetries is how many failures in a row are waited for, and longPause how long the pause before the next attempt is if the
	// operator is then taken to be stuck: more are as fruitless.
	fewRetries = 3
	longPause  = firstRetry << 8
	// longestBlind is longer than client-go waits before it watches again after some failures in a row.
	longestBlind = 15 * time.Second
	// longestPause is more than any step may take.
	longestPause = time.Minute
	// mostTimers is how often in a row a timer may lead to nothing until it is taken for one that always goes off.
	mostTimers = 2
	// nearFuture is how far ahead a timer is waited for, and farFuture the same where a mistake would cost more.
	nearFuture = 3 * time.Second
	farFuture  = 6 * time.Second
)

// activity follows what the operator does, and knows what it is going to do.
type activity struct {
	mutex   sync.Mutex
	last    time.Time
	running map[uint64]time.Time
	next    map[subject]*appointment
	writes  int // that changed something, or may have
	wrote   map[uint64]bool
	// hindered are the reconciles of which a write was refused by the disturbance.
	hindered map[uint64]bool
	refused  []*lens.Request
	panics   []string
	// watching are the resources that were watched since the process was started.
	watching map[string]*watches
	// elections learn from what the operator writes; nil learns nothing.
	elections *elections
	// marks is set once a reconcile was marked; nil if nothing depends on it.
	marks *atomic.Bool
	news  chan struct{}
}

// watches are the watches of a resource.
type watches struct {
	open  int
	ended time.Time // the last that did
	// informs says that a cache is behind one of them, which asks for bookmarks. Another one may have ended for good.
	informs bool
}

// pause is how long it takes at most until another watch begins. A cache comes back, with a growing pause between its attempts, unless
// the operator has stopped it.
func (w *watches) pause() time.Duration {
	if w.informs {
		return longestBlind
	}
	return longPause
}

type subject struct{ controller, namespace, name string }

// appointment is when an object is reconciled again without an event.
type appointment struct {
	due      time.Time
	after    time.Duration // how long it takes from the last reconcile; 0 if it is a retry, or there is none
	failures int           // in a row
	same     int           // the last of them, with the same error
	failed   time.Time     // when the last of them was; zero if the last time was none
	pause    time.Duration // between the last failure and the attempt after it
	healed   bool          // what it failed at may succeed now
	idle     int           // timers in a row that led to no write
	// idleSince is when the first of them was. rang says that the last reconcile came of a timer, and fruitless that the last
	// of those led to no write.
	idleSince       time.Time
	rang, fruitless bool
	err             string // of the last failure
	// hindered says that a write was refused by the disturbance, now or before.
	hindered bool
}

func newActivity() *activity {
	return &activity{last: time.Now(), running: map[uint64]time.Time{}, next: map[subject]*appointment{}, wrote: map[uint64]bool{}, hindered: map[uint64]bool{}, watching: map[string]*watches{}, news: make(chan struct{})}
}

// follow reads a stream until it ends.
func (a *activity) follow(stream *lens.Stream) {
	for event := range stream.Follow(context.Background(), 0) {
		a.see(event)
	}
}

// neverEnds says that a resource is written for as long as a cluster or an operator runs.
func neverEnds(r lens.Resource) bool {
	return r.Resource == "leases" || r.Resource == "nodes" || r.Resource == "events"
}

func (a *activity) see(e *lens.Event) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case e.Process != nil:
		clear(a.running)
		clear(a.next)
		clear(a.watching)
		a.last = time.Now()
	case e.Delivery != nil:
		if e.Delivery.Type == "BOOKMARK" || neverEnds(e.Delivery.Resource) || a.elections.shows(e.Delivery) {
			return
		}
		a.last = time.Now()
	case e.Reconcile != nil:
		if a.marks != nil {
			a.marks.Store(true)
		}
		a.reconcile(e.Reconcile, e.At)
	case e.Request != nil:
		a.request(e.Request)
	default:
		return
	}
	close(a.news)
	a.news = make(chan struct{})
}

// lacksRight is what the API server says if a role does not allow something. Admission refuses with the same code.
var lacksRight = regexp.MustCompile(`(?i)user "[^"]*" (cannot |\(groups=.* attempting to grant )|cannot set blockOwnerDeletion`)

func (a *activity) request(r *lens.Request) {
	a.elections.see(r)
	if r.Status == 403 && r.Fault == "" && r.Path == "" && lacksRight.MatchString(r.Message) {
		a.refused = append(a.refused, r)
	}
	if r.Verb == "watch" && r.Status == 200 {
		resource := r.Resource.Group + "/" + r.Resource.Resource + "/" + r.Resource.Namespace
		known := a.watching[resource]
		if known == nil {
			known = &watches{}
			a.watching[resource] = known
		}
		known.informs = known.informs || r.Query != nil && r.Query.Bookmarks
		if r.Open {
			known.open++
			a.last = time.Now() // it receives what exists
		} else {
			known.open, known.ended = max(0, known.open-1), time.Now()
		}
	}
	if r.IsWrite() && r.Fault != "" && r.Refused() && r.Reconcile != 0 {
		a.hindered[r.Reconcile] = true
	}
	if !r.IsWrite() || neverEnds(r.Resource) || r.Change != nil && r.Change.None || isElection(r) {
		return
	}
	a.last = time.Now()
	a.writes++
	a.wrote[r.Reconcile] = true
}

func (a *activity) reconcile(r *lens.Reconcile, at time.Time) {
	if !r.Ended {
		a.running[r.ID] = at
		if meeting := a.next[subject{r.Controller, r.Namespace, r.Name}]; meeting != nil {
			meeting.rang = meeting.failures == 0 && !meeting.due.IsZero() && time.Until(meeting.due) <= early
			if !meeting.failed.IsZero() {
				meeting.pause = time.Since(meeting.failed)
			}
		}
		return
	}
	delete(a.running, r.ID)
	if r.Panicked {
		a.panics = append(a.panics, strings.TrimSpace(r.Error))
	}
	who := subject{r.Controller, r.Namespace, r.Name}
	meeting := a.next[who]
	if meeting == nil {
		meeting = &appointment{}
		a.next[who] = meeting
	}
	wrote := a.wrote[r.ID]
	delete(a.wrote, r.ID)
	meeting.hindered = meeting.hindered || a.hindered[r.ID]
	delete(a.hindered, r.ID)
	meeting.due, meeting.failed, meeting.healed, meeting.after = time.Time{}, time.Time{}, false, 0
	meeting.fruitless = !wrote && (meeting.rang || meeting.fruitless)
	switch {
	case r.Error != "" && !r.Terminal || r.Panicked || r.Requeue && r.RequeueAfter == 0:
		if meeting.same++; meeting.failures == 0 || plain(meeting.err) != plain(r.Error) {
			meeting.same = 1
		}
		meeting.failed, meeting.err = time.Now(), r.Error
		meeting.due = meeting.failed.Add(meeting.back())
		meeting.failures++
		meeting.idle = 0 // it does not come back for a timer now
	case r.RequeueAfter > 0:
		meeting.due, meeting.failures, meeting.pause, meeting.after = time.Now().Add(r.RequeueAfter), 0, 0, r.RequeueAfter
		if meeting.idle++; wrote {
			meeting.idle = 0
		}
		if meeting.idle <= 1 {
			meeting.idleSince = time.Now()
		}
	default:
		meeting.failures, meeting.idle, meeting.pause = 0, 0, 0
	}
}

// back is how long it takes until something that has failed is tried again: twice as long as the last time. Operators may have
// another rate limiter than the usual one.
func (m *appointment) back() time.Duration {
	const most = 18                                                                                // more than longestRetry
	return max(min(firstRetry<<min(m.failures, most), longestRetry), min(2*m.pause, longestPause)) //nolint:mnd // twice
}

// conflicting is what the API server says if an object was changed in the meantime. The next attempt may know of the change.
const conflicting = "the object has been modified"

// stuck says that an operator goes on failing.
func (m *appointment) stuck(expected func(string) bool) bool {
	return !m.healed && m.failures > fewRetries && m.due.Sub(m.failed) >= longPause && !m.conflicts() && !m.surprises(expected)
}

// conflicts says that the last attempt failed because an object was changed in the meantime.
func (m *appointment) conflicts() bool { return m.failures > 0 && strings.Contains(m.err, conflicting) }

// surprises says that the last attempt failed at something new, so the next one may succeed. It is far away if the operator failed
// often before, as operators do that wait for their application.
func (m *appointment) surprises(expected func(string) bool) bool {
	return expected != nil && m.failures > 0 && m.err != "" && m.same <= fewRetries && !expected(m.err)
}

// heal says that what was in the way is gone, so the next attempts are worth waiting for.
func (a *activity) heal() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, meeting := range a.next {
		meeting.healed, meeting.idle = meeting.failures > 0, 0
	}
}

// outlook is what is known about what the operator is going to do.
type outlook struct {
	last    time.Time
	running int
	blind   bool                // a watch has ended and was not begun again yet
	due     time.Time           // of the next appointment that matters; zero if there is none
	stuck   bool                // something is retried and keeps failing
	failing []string            // with these errors
	failers map[string][]string // the controllers that fail with them
	at      map[string]string   // the same errors by namespace and name of what is reconciled
	timer   bool                // it does something in the next minute by itself
	retries bool                // it tries again when it is due, whatever was said about how far ahead that may be
	// unplanned means that nothing is known of what it plans.
	unplanned bool
	news      <-chan struct{}
}

// outlook looks ahead for a time. If it is known at which errors the operator is expected to fail, retries after others are waited for,
// too.
func (a *activity) outlook(now time.Time, ahead time.Duration, expected func(failure string) bool) outlook {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	r := outlook{last: a.last, running: len(a.running), news: a.news, failers: map[string][]string{}, at: map[string]string{}, unplanned: len(a.next) == 0}
	for _, one := range a.watching {
		r.blind = r.blind || one.open == 0 && now.Sub(one.ended) < one.pause()
	}
	for who, meeting := range a.next {
		switch {
		case meeting.due.IsZero():
		case meeting.idle > mostTimers:
			r.timer = r.timer || !meeting.fruitless && meeting.due.Sub(now) <= longestPause // others than the timer led to these
		case meeting.stuck(expected):
			r.stuck = true
			if meeting.err != "" {
				r.failing = append(r.failing, meeting.err)
				r.at[who.namespace+"/"+who.name] = meeting.err
				r.failers[meeting.err] = append(r.failers[meeting.err], who.controller)
			}
		case meeting.due.Sub(now) > ahead && !meeting.healed && !meeting.conflicts() && !meeting.surprises(expected):
			r.timer = r.timer || meeting.failures == 0 && meeting.due.Sub(now) <= longestPause
		case r.due.IsZero() || meeting.due.Before(r.due):
			r.due, r.retries = meeting.due, meeting.failures > 0
		}
	}
	slices.Sort(r.failing)
	return r
}

// written is how often the operator wrote something that changed.
func (a *activity) written() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.writes
}

// take returns panics and refusals since the last time.
func (a *activity) take() (panics []string, refused []*lens.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	panics, refused = a.panics, a.refused
	a.panics, a.refused = nil, nil
	return panics, refused
}
