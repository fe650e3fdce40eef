// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"time"
)

// waiting is what led to a reconcile that has not begun yet.
type waiting struct {
	// events are the oldest ones and the last one, if there is no room for all.
	events []*trigger
	folded int
	// ready is when the first of them was due. It is zero if that is unknown, because the queue decides the back-off
	// of failed requests.
	ready time.Time
	// delay is when the first of the events is due, if not at once.
	delay time.Time
	// timer is when the last reconcile wanted to come back; zero if it did not.
	timer time.Time
	// spare is the end of a timer or a delay that was still pending when the object was reconciled for another reason.
	// retry is the time at which that happened to a retry. Queues differ: a priority queue forgets them, the classic
	// queue calls again.
	spare, retry time.Time
}

// maxBackOff is the default maximum back-off of queues.
const maxBackOff = 1000 * time.Second

// unknownDelay is the delay of a request whose back-off the queue decides.
const unknownDelay time.Duration = -1

// add records that an event causes a reconcile, after a delay.
func (c *Controller) add(key waitKey, e *trigger, after time.Duration) {
	if !e.isNoted {
		e.isNoted = true
		c.enqueued++
	}
	w := c.waitingFor(key, e.seen)
	if w == nil {
		return
	}
	switch {
	case after > 0:
		w.delay = first(w.delay, e.seen.Add(after))
		w.ready = first(w.ready, e.seen.Add(after))
	case after != unknownDelay:
		w.ready = first(w.ready, e.seen)
	}
	c.recorder.tell(e)
	for _, other := range w.events {
		if other == e || other.cause.isSame(&e.cause) {
			return // a handler that requests twice, or two watches that report the same
		}
	}
	c.put(w, e)
}

// isSame reports whether two causes are one and the same event.
func (c *Cause) isSame(other *Cause) bool {
	if c.Type != other.Type || c.Type != Created && c.Type != Updated && c.Type != Deleted || c.Object == nil || other.Object == nil {
		return false
	}
	return c.ResourceVersion != "" && c.ResourceVersion == other.ResourceVersion && c.Object.UID != "" && c.Object.UID == other.Object.UID
}

// put adds an event within the bounds.
func (c *Controller) put(w *waiting, e *trigger) {
	r := c.recorder
	w.folded++
	limit := r.options.MaxCauses
	if r.waitingBytes > r.options.MaxWaitingBytes {
		limit = min(limit, 2)
		e = &trigger{controller: c, what: e.what, seen: e.seen, told: e.bare()}
		r.dropped.changes++
	}
	if len(w.events) == 0 {
		c.waits++
	}
	if len(w.events) < limit {
		w.events = append(w.events, e)
	} else {
		last := &w.events[len(w.events)-1]
		r.waitingBytes -= (*last).size()
		if c.unlisted == nil {
			c.unlisted = map[causeKind]uint64{}
		}
		count(c.unlisted, kindOfCause(&(*last).cause), causeKind{cause: (*last).cause.Type, kind: otherKinds})
		*last = e
	}
	r.waitingBytes += e.size()
}

// comeBack records that a reconcile requested another one at its end, after a failure or by a timer.
func (c *Controller) comeBack(key waitKey, why CauseType, now time.Time, after time.Duration) {
	w := c.waitingFor(key, now)
	if w == nil {
		return
	}
	if why == Timer {
		w.timer = now.Add(after)
		return
	}
	c.put(w, causedBy(why, now))
}

// waitingFor returns what waits for an object; nil if there is no room for it.
func (c *Controller) waitingFor(key waitKey, now time.Time) *waiting {
	w, ok := c.waiting[key]
	if ok {
		return w
	}
	if len(c.waiting) >= c.recorder.options.MaxWaiting {
		c.forgetSpares(now)
	}
	if len(c.waiting) >= c.recorder.options.MaxWaiting {
		c.recorder.dropped.causes++
		return nil
	}
	w = &waiting{}
	c.waiting[key] = w
	return w
}

// forgetSpares makes room: it drops entries that no queue seems to have any more.
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
func (c *Controller) take(key waitKey, now time.Time) (events []*trigger, folded int, waited time.Duration) {
	w, ok := c.waiting[key]
	if !ok {
		return nil, 0, 0
	}
	events, folded = w.events, w.folded
	for _, e := range events {
		c.recorder.waitingBytes -= e.size()
	}
	if len(events) > 0 {
		c.waits--
	}
	switch {
	case w.timer.IsZero():
	case !w.timer.After(now) || len(events) == 0 && w.spare.IsZero():
		// Without another cause it is this one, even if it is early by the clock: clocks can be adjusted.
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
		events = []*trigger{causedBy(Retried, w.retry)}
		w.retry = time.Time{}
	default:
		w.retry = time.Time{}
	}
	return events, len(events)
}

// timerAt is the end of a timer, which is when it was due, unless the clock was set.
func timerAt(due, now time.Time) *trigger {
	return causedBy(Timer, first(due, now))
}

// causedBy returns a cause without an event.
func causedBy(what CauseType, seen time.Time) *trigger {
	return &trigger{what: what, seen: seen, told: &told{cause: Cause{Type: what, Seen: seen}}}
}

// first returns the earlier of two times, ignoring zero.
func first(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
