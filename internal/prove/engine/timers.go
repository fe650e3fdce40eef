// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
)

// Operators that look after their objects every ten seconds or so do some of their work only then. What they do then is learned as well:
// while a custom resource is not finished, and once when it is.

// early is how much sooner than expected a timer may go off: the operator has set it a little before it was seen.
const early = 100 * time.Millisecond

// settleStage waits for the end of an undisturbed step.
func (r *run) settleStage(ctx context.Context) (rested, error) {
	end := r.endOfTimers()
	over, err := r.settleFor(ctx, patience)
	if err != nil {
		return over, err
	}
	return r.followTimers(ctx, over, end, nil)
}

// endOfTimers is when the last timer of a step that begins to settle now is followed.
func (r *run) endOfTimers() time.Time {
	const steps = 2 // of the longest length, for all timers
	return time.Now().Add(steps * r.campaign.o.Settling.Bound)
}

// followTimers waits for timers that go off within the time that a step may take, until they lead to nothing. It does so as long as
// a custom resource says that it is not finished, and it is not enough; nil means that it never is.
func (r *run) followTimers(ctx context.Context, over rested, end time.Time, enough func() bool) (_ rested, err error) {
	for !over.busy && time.Now().Before(end) && r.isUnfinished() && (enough == nil || !enough()) {
		due := r.activity.nextTimer(r.campaign.o.Settling.Bound, true)
		if due.IsZero() {
			break
		}
		if over, err = r.settleAfter(ctx, due); err != nil {
			return over, err
		}
	}
	return over, nil
}

// isUnfinished reports whether a custom resource says that it is not finished. That includes those that never finish: a timer may
// lead to something nevertheless.
func (r *run) isUnfinished() bool {
	state := r.world.State()
	return slices.ContainsFunc(r.campaign.o.Subjects, func(subject *unstructured.Unstructured) bool {
		_, live := find(state, subject)
		if live == nil {
			return false
		}
		status, _ := unfinished(live)
		return status != ""
	})
}

// settleAfter waits for a timer, and for what the operator does then.
func (r *run) settleAfter(ctx context.Context, due time.Time) (rested, error) {
	pause := time.NewTimer(time.Until(due) + early)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return rested{}, ctx.Err()
	case <-pause.C:
	}
	return r.settleFor(ctx, patience)
}

// nextTimer is when a timer goes off next, within some time; zero if none does. Those that led to nothing the last time may be left out.
func (a *activity) nextTimer(within time.Duration, useful bool) (due time.Time) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, meeting := range a.next {
		if meeting.due.IsZero() || meeting.failures > 0 || useful && meeting.fruitless || time.Until(meeting.due) > within {
			continue
		}
		if due.IsZero() || meeting.due.Before(due) {
			due = meeting.due
		}
	}
	return due
}

// timers are the controllers that have set a timer, and the longest one that is not longer than the longest back-off; 0 if all are.
func (a *activity) timers() map[string]time.Duration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	longest := map[string]time.Duration{}
	for who, meeting := range a.next {
		switch {
		case meeting.after <= 0:
		case meeting.after > longestRetry:
			longest[who.controller] = max(longest[who.controller], 0)
		default:
			longest[who.controller] = max(longest[who.controller], meeting.after)
		}
	}
	return longest
}

// muchLonger is by how much a timer differs from one that has another purpose.
const muchLonger = 4

// lateControllers have set a timer that is too late to wait for, and set none undisturbed, or only much longer ones: they know that
// something is not done yet. Others look after their objects now and then, and must not rely on it.
func (c *campaign) lateControllers(timers map[string]time.Duration) (late []string) {
	for controller, after := range timers {
		always := slices.ContainsFunc(c.reference, func(s *stage) bool {
			usual := s.rested.timers[controller]
			return usual > 0 && usual < muchLonger*after
		})
		if after > c.o.Settling.Bound && !always {
			late = append(late, controller)
		}
	}
	return late
}

// mayWrite reports whether one of these controllers may write what is wrong: it does so undisturbed, or it is not known which one does.
func (c *campaign) mayWrite(controllers []string, o *Observation) bool {
	if len(controllers) == 0 {
		return false
	}
	known := false
	for _, s := range c.reference {
		for _, w := range s.writes {
			if o.Object != nameOf(w.object, w.Namespace, w.Name) {
				continue
			}
			if w.controller == "" || slices.Contains(controllers, w.controller) {
				return true
			}
			known = true
		}
	}
	return !known
}

// timed are the fields that the operator writes when its timers go off, by the kind of the object.
type timed map[string]bool

func (t timed) add(kind, field string) {
	t[kind+"|"+inBrackets.ReplaceAllString(field, "[]")] = true
}

// has reports whether all that was observed is written by timers.
func (t timed) has(o *Observation) bool {
	kind, _, _ := strings.Cut(o.Object, " ")
	fields := o.Fields
	if len(fields) == 0 {
		fields = []string{""}
	}
	return !slices.ContainsFunc(fields, func(field string) bool { return !t[kind+"|"+inBrackets.ReplaceAllString(field, "[]")] })
}

// timerAtRest is when a timer goes off of which an outlook says that there is one; zero if none does.
func (a *activity) timerAtRest() time.Time { return a.nextTimer(longestPause, false) }

// awaitTimer waits until a timer has gone off once, and returns what the operator wrote then; nil if there is no timer to wait for.
func (r *run) awaitTimer(ctx context.Context) (timed, error) {
	due := r.activity.timerAtRest()
	if due.IsZero() {
		return nil, nil
	}
	before, since := r.shape(), r.lens.Stream().Last()
	over, err := r.settleAfter(ctx, due)
	if err != nil {
		return nil, err
	}
	if over.stuck {
		r.campaign.learnFailing(over.failing) // a restart only shows it earlier
	}
	if err := r.lens.Flush(ctx); err != nil {
		return nil, err
	}
	found := timed{}
	for _, d := range compare.NewMask().Differences(before, r.shape()) {
		kind, _, _ := strings.Cut(d.Object, " ")
		found.add(kind, d.Path)
	}
	for _, e := range r.events(since) {
		w := e.Request
		if w == nil || !w.IsWrite() || w.Refused() || w.Change == nil || w.Object == nil {
			continue
		}
		for _, one := range w.Change.Fields {
			found.add(w.Object.Kind, one.Path)
		}
		if w.Verb == "create" || len(w.Change.Fields) == 0 {
			found.add(w.Object.Kind, "")
		}
	}
	return found, nil
}

const (
	// mostIdle is how many reconciles in a row may lead to nothing, if there are mostPerSecond of them or more.
	mostIdle      = 50
	mostPerSecond = 20
)

// spins describes an object that is reconciled without a pause although that leads to nothing; empty if there is none.
func (a *activity) spins() string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for who, meeting := range a.next {
		took := time.Since(meeting.idleSince)
		if meeting.due.IsZero() || meeting.idle < mostIdle || time.Until(meeting.due) > time.Second/mostPerSecond {
			continue
		}
		if float64(meeting.idle) >= mostPerSecond*took.Seconds() {
			return fmt.Sprintf("%d reconciles of %s in %s, and none of them wrote anything", meeting.idle, strings.TrimPrefix(who.namespace+"/"+who.name, "/"), took.Round(time.Millisecond))
		}
	}
	return ""
}
