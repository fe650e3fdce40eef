// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"hash/maphash"
	"slices"
	"time"
)

// waiting is what led to a reconcile that has not begun yet.
type waiting struct {
	// events are the oldest ones and the last one, if there is no room for all.
	events []*trigger
	folded int
	// ready is when the first of them wanted its reconcile. It is zero if nobody knows, because the queue holds back what has
	// failed for as long as it thinks fit.
	ready time.Time
	// delay is when the first of the events wants its reconcile, if it is not at once.
	delay time.Time
	// timer is when the last reconcile wanted to come back; zero if it did not.
	timer time.Time
	// spare is when a timer or a delay is over that had not been when the object was reconciled for another reason, and retry
	// when that happened to a retry. Queues differ in what becomes of them: a priority queue forgets them, the classic one
	// calls again.
	spare, retry time.Time
}

// maxBackOff is how long queues hold back what has failed, at most, unless they are told otherwise.
const maxBackOff = 1000 * time.Second

// unknownDelay is that of a request that the queue is to hold back as it thinks fit.
const unknownDelay time.Duration = -1

// trigger is something that leads to reconciles. It is shared by all of those, and not changed any more once it waits.
type trigger struct {
	cause  Cause
	object Object
	// generation is whether the object's generation changed, or its content if its kind has no generations, or the object is
	// new, or gone at once, or its deletion began, which deletion says.
	generation, deletion bool
	// created is when an object was created that is gone or is to be deleted.
	created time.Time
	// large are the hashes of those values that are not shown as a whole.
	large []largeChange
}

// add notes that an event leads to a reconcile. It comes before the queue is told: the other way round, the reconcile could
// begin without its cause.
func (c *Controller) add(key any, e *trigger, after time.Duration) {
	now := c.recorder.options.Clock.Now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w := c.waitingFor(key, now)
	if w == nil {
		return
	}
	switch {
	case after > 0:
		w.delay = first(w.delay, now.Add(after))
		w.ready = first(w.ready, now.Add(after))
	case after != unknownDelay:
		w.ready = first(w.ready, e.cause.Seen)
	}
	for _, other := range w.events {
		if other == e || other.cause.isSame(&e.cause) {
			return // a handler that asks twice, or two watches that see the same
		}
	}
	c.put(w, e)
}

// isSame says whether two causes are one and the same event.
func (c *Cause) isSame(other *Cause) bool {
	if c.Type != other.Type || c.Type != Created && c.Type != Updated && c.Type != Deleted || c.Object == nil || other.Object == nil {
		return false
	}
	return c.ResourceVersion != "" && c.ResourceVersion == other.ResourceVersion && c.Object.UID != "" && c.Object.UID == other.Object.UID
}

// put adds an event within the bounds. The mutex is held.
func (c *Controller) put(w *waiting, e *trigger) {
	r := c.recorder
	w.folded++
	limit := r.options.MaxCauses
	if r.waitingBytes.Load() > int64(r.options.MaxWaitingBytes) {
		limit = min(limit, 2)
		e = e.bare()
		r.dropped.changes.Add(1)
	}
	if len(w.events) == 0 {
		c.waits++
	}
	if len(w.events) < limit {
		w.events = append(w.events, e)
	} else {
		last := &w.events[len(w.events)-1]
		r.waitingBytes.Add(-int64((*last).size()))
		if c.unlisted == nil {
			c.unlisted = map[causeKind]uint64{}
		}
		count(c.unlisted, kindOfCause(&(*last).cause), causeKind{cause: (*last).cause.Type, kind: otherKinds})
		*last = e
	}
	r.waitingBytes.Add(int64(e.size()))
}

// bare is an event without what changed and by whom.
func (e *trigger) bare() *trigger {
	b := &trigger{cause: e.cause, object: e.object, generation: e.generation, deletion: e.deletion, created: e.created}
	b.cause.Changes, b.cause.By = nil, nil
	if b.cause.Object != nil {
		b.cause.Object = &b.object
	}
	return b
}

// hashes are those of the values before and after a change. They are not known of what is hidden, nor of values that are too
// large.
func (e *trigger) hashes(index int) (old, now uint64, known bool) {
	change := &e.cause.Changes[index]
	if change.Old == hidden || change.New == hidden {
		return 0, 0, false
	}
	for i := range e.large {
		if large := &e.large[i]; large.index == index {
			return large.old, large.now, large.known
		}
	}
	return maphash.String(hashSeed, change.Old), maphash.String(hashSeed, change.New), true
}

// size is about how many bytes an event takes. One that leads to several reconciles is counted for each.
func (e *trigger) size() int {
	const itself, change, writer = 400, 48, 80
	bytes := itself + len(e.cause.By)*writer
	for i := range e.cause.Changes {
		bytes += change + len(e.cause.Changes[i].Path) + len(e.cause.Changes[i].Old) + len(e.cause.Changes[i].New)
	}
	return bytes
}

// comeBack notes that a reconcile has asked for another one, after a failure or by a timer.
func (c *Controller) comeBack(key any, why CauseType, after time.Duration) {
	now := c.recorder.options.Clock.Now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w := c.waitingFor(key, now)
	if w == nil {
		return
	}
	if why == Timer {
		w.timer = now.Add(after)
		return
	}
	c.put(w, &trigger{cause: Cause{Type: why, Seen: now}})
}

// waitingFor returns what waits for an object; nil if there is no room for it.
func (c *Controller) waitingFor(key any, now time.Time) *waiting {
	w, ok := c.waiting[key]
	if ok {
		return w
	}
	if len(c.waiting) >= c.recorder.options.MaxWaiting {
		c.forgetSpares(now)
	}
	if len(c.waiting) >= c.recorder.options.MaxWaiting {
		c.recorder.dropped.causes.Add(1)
		return nil
	}
	w = &waiting{}
	c.waiting[key] = w
	return w
}

// forgetSpares makes room by forgetting what no queue seems to remember either.
func (c *Controller) forgetSpares(now time.Time) {
	const patience, interval = time.Minute, time.Second
	if now.Sub(c.forgot).Abs() < interval {
		return
	}
	c.forgot = now
	for key, w := range c.waiting {
		if len(w.events) == 0 && w.timer.IsZero() && now.Sub(w.spare) > patience && now.Sub(w.retry) > patience {
			delete(c.waiting, key)
		}
	}
}

// take returns what led to a reconcile that begins now, and how long it has waited for that.
func (c *Controller) take(key any, now time.Time) (events []*trigger, folded int, waited time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w, ok := c.waiting[key]
	if !ok {
		return nil, 0, 0
	}
	events, folded = w.events, w.folded
	for _, e := range events {
		c.recorder.waitingBytes.Add(-int64(e.size()))
	}
	if len(events) > 0 {
		c.waits--
	}
	switch {
	case w.timer.IsZero():
	case !w.timer.After(now) || len(events) == 0 && w.spare.IsZero():
		// Without another reason it is this one, even if the clock says that it is early: clocks are set.
		events, folded = append([]*trigger{timerAt(w.timer, now)}, events...), folded+1
		w.ready = first(w.ready, w.timer)
	default:
		w.spare = first(w.spare, w.timer)
	}
	if w.delay.After(now) {
		w.spare = first(w.spare, w.delay)
	}
	if slices.ContainsFunc(events, func(e *trigger) bool { return e.cause.Type == Retried }) {
		w.retry = time.Time{}
		if len(events) > 1 {
			w.retry = now
		}
	}
	if len(events) == 0 {
		events, folded = w.takeSpare(now)
	} else if !w.spare.After(now) {
		w.spare = time.Time{}
	}
	if !w.ready.IsZero() {
		waited = max(0, now.Sub(w.ready))
	}
	if w.spare.IsZero() && w.retry.IsZero() {
		delete(c.waiting, key)
	} else {
		*w = waiting{spare: w.spare, retry: w.retry}
	}
	return events, folded, waited
}

// takeSpare explains a reconcile by what only some queues remember.
func (w *waiting) takeSpare(now time.Time) (events []*trigger, folded int) {
	retries := !w.retry.IsZero() && now.Sub(w.retry) < maxBackOff
	switch {
	case !w.spare.IsZero() && (!retries || !w.spare.After(now)):
		events = []*trigger{timerAt(w.spare, now)}
		w.ready, w.spare = w.spare, time.Time{}
	case retries:
		events = []*trigger{{cause: Cause{Type: Retried, Seen: w.retry}}}
		w.retry = time.Time{}
	default:
		w.retry = time.Time{}
	}
	return events, len(events)
}

// timerAt is the end of a timer, which is when it was due, unless the clock was set.
func timerAt(due, now time.Time) *trigger {
	return &trigger{cause: Cause{Type: Timer, Seen: first(due, now)}}
}

// first is the earlier one of those that are not zero.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
