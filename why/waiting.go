// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import "time"

// waiting is what led to a reconcile that has not begun yet.
type waiting struct {
	// events are the oldest ones and the last one, if there is no room for all.
	events []*trigger
	folded int
	// delay is when the first of the events wants its reconcile, if it is not at once.
	delay time.Time
	// timer is when the last reconcile wanted to come back; zero if it did not.
	timer time.Time
	// spare is when a timer or a delay is over that had not been when the object was reconciled for another reason. Queues
	// differ in what becomes of that: a priority queue forgets it, the classic one calls again.
	spare time.Time
}

// trigger is something that leads to reconciles. It is shared by all of those, and not changed any more once it waits.
type trigger struct {
	cause  Cause
	object Object
	// generation is whether the object's generation changed, or the object is new, or its deletion began, which deletion
	// says.
	generation, deletion bool
	// created is when an object was created that is gone or is to be deleted.
	created time.Time
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
	if after > 0 {
		w.delay = first(w.delay, now.Add(after))
	}
	if count := len(w.events); count > 0 && w.events[count-1] == e {
		return // a handler that asks twice
	}
	c.put(w, e)
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
	if len(w.events) < limit {
		w.events = append(w.events, e)
	} else {
		last := &w.events[len(w.events)-1]
		r.waitingBytes.Add(-int64((*last).size()))
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
		if len(w.events) == 0 && w.timer.IsZero() && now.Sub(w.spare) > patience {
			delete(c.waiting, key)
		}
	}
}

// take returns what led to a reconcile that begins now.
func (c *Controller) take(key any, now time.Time) (events []*trigger, folded int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w, ok := c.waiting[key]
	if !ok {
		return nil, 0
	}
	events, folded = w.events, w.folded
	for _, e := range events {
		c.recorder.waitingBytes.Add(-int64(e.size()))
	}
	switch {
	case w.timer.IsZero():
	case !w.timer.After(now) || len(events) == 0 && w.spare.IsZero():
		// Without another reason it is this one, even if the clock says that it is early: clocks are set.
		events, folded = append([]*trigger{timerAt(w.timer, now)}, events...), folded+1
	default:
		w.spare = first(w.spare, w.timer)
	}
	if w.delay.After(now) {
		w.spare = first(w.spare, w.delay)
	}
	if !w.spare.IsZero() && (len(events) == 0 || !w.spare.After(now)) {
		if len(events) == 0 {
			events, folded = []*trigger{timerAt(w.spare, now)}, 1
		}
		w.spare = time.Time{}
	}
	if w.spare.IsZero() {
		delete(c.waiting, key)
	} else {
		*w = waiting{spare: w.spare}
	}
	return events, folded
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
