// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

const (
	// firstRetry is how long controller-runtime waits before it retries for the first time; each time it is twice as long.
	firstRetry = 5 * time.Millisecond
	// mostRetries is after how many failures in a row without any success an operator is taken to be stuck: more are as fruitless.
	mostRetries = 8
	// mostTimers is how often in a row a timer may lead to nothing until it is taken for one that always goes off.
	mostTimers = 2
	// nearFuture is how far ahead a timer is waited for.
	nearFuture = 3 * time.Second
)

// activity follows what the operator does, and knows what it is going to do.
type activity struct {
	mutex   sync.Mutex
	last    time.Time
	running map[uint64]time.Time
	next    map[subject]*appointment
	writes  int // that changed something, or may have
	wrote   map[uint64]bool
	refused []*lens.Request
	panics  []string
	// watching is how many watches of a resource are open, and watched which were since the process was started.
	watching map[string]int
	watched  map[string]bool
	news     chan struct{}
}

type subject struct{ controller, namespace, name string }

// appointment is when an object is reconciled again without an event.
type appointment struct {
	due      time.Time
	failures int // in a row
	idle     int // timers in a row that led to no write
}

func newActivity() *activity {
	return &activity{last: time.Now(), running: map[uint64]time.Time{}, next: map[subject]*appointment{}, wrote: map[uint64]bool{}, watching: map[string]int{}, watched: map[string]bool{}, news: make(chan struct{})}
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
		clear(a.watched)
		a.last = time.Now()
	case e.Delivery != nil:
		if e.Delivery.Type == "BOOKMARK" || neverEnds(e.Delivery.Resource) {
			return
		}
		a.last = time.Now()
	case e.Reconcile != nil:
		a.reconcile(e.Reconcile, e.At)
	case e.Request != nil:
		a.request(e.Request)
	default:
		return
	}
	close(a.news)
	a.news = make(chan struct{})
}

func (a *activity) request(r *lens.Request) {
	if r.Status == 403 && r.Fault == "" && r.Path == "" {
		a.refused = append(a.refused, r)
	}
	if r.Verb == "watch" && r.Status == 200 {
		resource := r.Resource.Group + "/" + r.Resource.Resource + "/" + r.Resource.Namespace
		if r.Open {
			a.watching[resource]++
			a.watched[resource] = true
			a.last = time.Now() // it is told what is there
		} else {
			a.watching[resource] = max(0, a.watching[resource]-1)
		}
	}
	if !r.IsWrite() || neverEnds(r.Resource) || r.Change != nil && r.Change.None {
		return
	}
	a.last = time.Now()
	a.writes++
	a.wrote[r.Reconcile] = true
}

func (a *activity) reconcile(r *lens.Reconcile, at time.Time) {
	if !r.Ended {
		a.running[r.ID] = at
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
	meeting.due = time.Time{}
	switch {
	case r.Error != "" && !r.Terminal || r.Panicked || r.Requeue && r.RequeueAfter == 0:
		meeting.due = time.Now().Add(firstRetry << min(meeting.failures, 12)) //nolint:mnd // 20 s
		meeting.failures++
	case r.RequeueAfter > 0:
		meeting.due, meeting.failures = time.Now().Add(r.RequeueAfter), 0
		if meeting.idle++; wrote {
			meeting.idle = 0
		}
	default:
		meeting.failures, meeting.idle = 0, 0
	}
}

// outlook is what is known about what the operator is going to do.
type outlook struct {
	last    time.Time
	running int
	blind   bool      // a watch has ended and was not begun again yet
	due     time.Time // of the next appointment that matters; zero if there is none
	stuck   bool      // something is retried and keeps failing
	news    <-chan struct{}
}

func (a *activity) outlook(now time.Time) outlook {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	r := outlook{last: a.last, running: len(a.running), news: a.news}
	for resource := range a.watched {
		r.blind = r.blind || a.watching[resource] == 0
	}
	for _, meeting := range a.next {
		switch {
		case meeting.due.IsZero() || meeting.idle > mostTimers:
		case meeting.failures > mostRetries:
			r.stuck = true
		case meeting.due.Sub(now) > nearFuture:
		case r.due.IsZero() || meeting.due.Before(r.due):
			r.due = meeting.due
		}
	}
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
