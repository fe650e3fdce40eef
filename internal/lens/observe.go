// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// maxRequest and maxAnswer are how much of a body is decoded: more than the API server accepts, and a list of some
	// thousand objects.
	maxRequest = 4 << 20
	maxAnswer  = 32 << 20
	// maxErrorText is how much of an error that is not a Status is read.
	maxErrorText = 64 << 10
	// maxQueued is how many observations wait at most.
	maxQueued = 16 << 10
	// keptWrites is the number of writes that are kept, to recognize their echoes.
	keptWrites = 8 << 10
	// keptGone is the number of deleted objects whose names are kept until their deletion is answered.
	keptGone = 1 << 10
	// gathering is how long the observer collects observations before it handles them. Handling each one at once would compete
	// with the forwarded traffic for the CPU.
	gathering = 10 * time.Millisecond
)

// observer turns traffic into events. It runs in one goroutine, beside the traffic, and counts
// what it has no room for.
type observer struct {
	stream *Stream
	budget budget
	queue  chan observation
	lost   atomic.Uint64
	// hurry ends the wait early.
	hurry chan struct{}

	closeOnce sync.Once
	quit      chan struct{}
	done      chan struct{}

	// The rest belongs to the goroutine.
	memory *memory
	// resources maps kinds to resources, and kinds the reverse, as far as objects were seen.
	resources map[schema.GroupKind]string
	kinds     map[schema.GroupResource]string
	// roles are the roles that the operator wrote.
	roles map[objectKey]bool
	// writes are the requests that made versions, and shown the watches that delivered them.
	writes, shown recent
	// gone are the objects that watches reported as deleted.
	gone tombstones
	// lists may turn out to fill a cache.
	lists lists
}

// observation is something that passed. One of its parts is set.
type observation struct {
	event    *Event
	exchange *exchange
	watching *watching
	flushed  chan struct{}

	// These belong to watching.
	data  []byte
	about Delivery
	at    time.Time
}

func newObserver(stream *Stream, pending, remembered int64) *observer {
	o := &observer{
		stream: stream, budget: budget{most: pending}, queue: make(chan observation, maxQueued), hurry: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
		memory: newMemory(remembered), resources: map[schema.GroupKind]string{}, kinds: map[schema.GroupResource]string{}, roles: map[objectKey]bool{},
	}
	go o.run()
	return o
}

func (o *observer) newCapture(most int) *capture { return &capture{budget: &o.budget, most: most} }

// newCount is a capture that keeps nothing and only counts.
func (o *observer) newCount(because string) *capture {
	return &capture{budget: &o.budget, short: because}
}

// emit adds an event unchanged.
func (o *observer) emit(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	o.put(observation{event: &e})
}

func (o *observer) observeExchange(x *exchange) {
	if !o.put(observation{exchange: x}) {
		x.sent.release()
		x.got.release()
	}
}

func (o *observer) observeFrame(w *watching, event []byte, about Delivery) {
	seen := observation{watching: w, about: about, at: time.Now()}
	if o.budget.take(len(event)) {
		seen.data = append([]byte(nil), event...)
	} else {
		seen.about.Undecoded = behind
	}
	if !o.put(seen) {
		o.budget.give(len(seen.data))
	}
}

// put never blocks.
func (o *observer) put(seen observation) bool {
	select {
	case o.queue <- seen:
		return true
	default:
		o.lost.Add(1)
		return false
	}
}

func (o *observer) flush(ctx context.Context) error {
	flushed := make(chan struct{})
	select {
	case o.hurry <- struct{}{}:
	default: // a signal is pending
	}
	select {
	case o.queue <- observation{flushed: flushed}:
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-flushed:
	case <-o.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// close returns when all that was put is in the stream.
func (o *observer) close() {
	o.closeOnce.Do(func() { close(o.quit) })
	<-o.done
	o.stream.close()
}

func (o *observer) run() {
	defer close(o.done)
	for {
		select {
		case seen := <-o.queue:
			o.take(seen)
			o.takeAll()
		case <-o.quit:
			o.takeAll()
			return
		}
		select {
		case <-time.After(gathering):
		case <-o.hurry:
		case <-o.quit:
		}
	}
}

// takeAll handles all queued observations.
func (o *observer) takeAll() {
	for {
		select {
		case seen := <-o.queue:
			o.take(seen)
		default:
			return
		}
	}
}

func (o *observer) take(seen observation) {
	if lost := o.lost.Swap(0); lost > 0 {
		o.stream.add(Event{At: time.Now(), Lost: &Lost{Events: lost, Reason: "the lens was overloaded"}})
	}
	switch {
	case seen.event != nil:
		event := *seen.event
		if event.Request != nil { // a watch that begins
			event.Request.Mentioned = o.memory.mentioned.in(event.Request) // which is a copy of its own
			if list := o.lists.follow(event.Request, event.At); list != nil {
				for _, delivery := range o.followed(list) {
					o.stream.add(Event{At: list.at, Delivery: delivery})
				}
			}
		}
		o.stream.add(event)
	case seen.exchange != nil:
		x := seen.exchange
		request := o.request(x)
		request.Mentioned = o.memory.mentioned.in(request)
		o.stream.add(Event{At: x.began, Request: request})
		for _, delivery := range x.delivered {
			o.stream.add(Event{At: x.began.Add(x.Request.Duration), Delivery: delivery})
		}
	case seen.watching != nil:
		o.stream.add(Event{At: seen.at, Delivery: o.delivery(&seen)})
		o.budget.give(len(seen.data))
	case seen.flushed != nil:
		close(seen.flushed)
	}
}
