// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// endDisturbance ends a disturbance, and waits for what the operator makes of that. A nudge lets any operator try again, so
// it would hide that one has given up. It is only for an operator that would try again by itself, but too late to wait for.
func (r *run) endDisturbance(ctx context.Context, d *disturbance) (over rested, err error) {
	r.note("the disturbance ends")
	r.activity.heal()
	if err := d.heal(ctx); err != nil {
		return over, err
	}
	over, err = r.settle(ctx)
	if err != nil || d.nudge == nil || !r.activity.returnsLater(r.campaign.o.Settling.Bound) {
		return over, err
	}
	if err := d.nudge(ctx); err != nil {
		return over, err
	}
	return r.settle(ctx)
}

// judgeMeanwhile judges the state while a disturbance lasts. Some operators look after their workloads only now and then, so they get
// as much time as at the end of a step.
func (r *run) judgeMeanwhile(ctx context.Context, judge func(context.Context) ([]*Observation, error), over rested, result *outcome) error {
	var wrong []*Observation
	var failed error
	over, err := r.settleMore(ctx, over, func() bool {
		wrong, failed = judge(ctx)
		return len(wrong) == 0 || failed != nil
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	if wrong, err = judge(ctx); err != nil { // it may not have been asked about the end
		return err
	}
	over.timers = nil // until then, it must not say that all is well
	wrong, excused := r.campaign.excuse(wrong, over, r.board.writes())
	if excused != "" {
		result.excused = excused
	}
	r.blame(result, wrong...)
	return nil
}

// returnsLater reports whether the operator comes back by itself after a time, but not later than after the longest back-off, to an
// object of which the disturbance refused a write. If it is not known which one that is, any will do: the write may not be of a
// reconcile. Without marks nothing is known of its plans, so it may.
func (a *activity) returnsLater(after time.Duration) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	meetings := slices.Collect(maps.Values(a.next))
	known := slices.ContainsFunc(meetings, func(m *appointment) bool { return m.hindered })
	return len(meetings) == 0 || slices.ContainsFunc(meetings, func(m *appointment) bool {
		left := time.Until(m.due)
		return (m.hindered || !known) && left > after && left <= longestRetry
	})
}
