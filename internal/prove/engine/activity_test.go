// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
	"github.com/opdock/opdock/why"
)

var (
	frigates    = lens.Resource{Group: "sea.example.com", Resource: "frigates"}
	deployments = lens.Resource{Group: "apps", Resource: "deployments", Namespace: "default", Name: "victory"}
	leases      = lens.Resource{Group: "coordination.k8s.io", Resource: "leases"}
)

// reconciled are the two events of a reconcile of Frigate victory.
func reconciled(r lens.Reconcile) []*lens.Event {
	r.Controller, r.Namespace, r.Name = "frigate", "default", "victory"
	begun := r
	begun.Ended, begun.Error, begun.Panicked, begun.Requeue, begun.RequeueAfter = false, "", false, false, 0
	r.Ended = true
	return []*lens.Event{{Reconcile: &begun}, {Reconcile: &r}}
}

func request(r lens.Request) *lens.Event { return &lens.Event{Request: &r} }

func watching(resource lens.Resource, open bool) *lens.Event {
	return request(lens.Request{Verb: "watch", Resource: resource, Status: 200, Open: open, Query: &lens.Query{Bookmarks: true}})
}

// following is an activity that has seen events.
func following(events ...*lens.Event) *activity {
	a := newActivity()
	for _, e := range events {
		a.see(e)
	}
	return a
}

// repeat is the same event several times.
func repeat(times int, events []*lens.Event) (all []*lens.Event) {
	for range times {
		all = append(all, events...)
	}
	return all
}

// TestOutlook is about what is known of an operator's plans, and so about when a step is over.
func TestOutlook(t *testing.T) {
	const far, near = time.Hour, time.Second
	const mostRetries = 8 // with the usual rate limiter
	failed := reconciled(lens.Reconcile{ID: 1, Error: "not now"})
	for name, test := range map[string]struct {
		events  []*lens.Event
		running int
		due     bool
		stuck   bool
		blind   bool
	}{
		"nothing":                       {},
		"a reconcile that runs":         {events: reconciled(lens.Reconcile{ID: 1})[:1], running: 1},
		"one that has ended":            {events: reconciled(lens.Reconcile{ID: 1})},
		"an error is retried":           {events: failed, due: true},
		"a terminal error is not":       {events: reconciled(lens.Reconcile{ID: 1, Error: "never", Terminal: true})},
		"a panic is retried":            {events: reconciled(lens.Reconcile{ID: 1, Panicked: true, Error: "nil map"}), due: true},
		"a requeue":                     {events: reconciled(lens.Reconcile{ID: 1, Requeue: true}), due: true},
		"a timer soon":                  {events: reconciled(lens.Reconcile{ID: 1, RequeueAfter: near}), due: true},
		"a timer in an hour":            {events: reconciled(lens.Reconcile{ID: 1, RequeueAfter: far})},
		"an error, and then none":       {events: slices.Concat(failed, reconciled(lens.Reconcile{ID: 2}))},
		"errors without end":            {events: repeat(mostRetries+1, failed), stuck: true},
		"conflicts may always end":      {events: repeat(mostRetries+1, reconciled(lens.Reconcile{ID: 1, Error: "Operation cannot be fulfilled on frigates: " + conflicting + " and try again"})), due: true},
		"conflicts after a long pause":  {events: repeat(mostRetries+6, reconciled(lens.Reconcile{ID: 1, Error: conflicting})), due: true},
		"errors that may still end":     {events: repeat(mostRetries, failed), due: true},
		"errors, and then a timer":      {events: slices.Concat(repeat(mostRetries+1, failed), reconciled(lens.Reconcile{ID: 2, RequeueAfter: near})), due: true},
		"timers, and then errors":       {events: slices.Concat(repeat(mostTimers+1, reconciled(lens.Reconcile{ID: 1, RequeueAfter: near})), repeat(mostRetries+1, failed)), stuck: true},
		"a timer that leads to nothing": {events: repeat(mostTimers+1, reconciled(lens.Reconcile{ID: 1, RequeueAfter: near}))},
		"it may do so a few times":      {events: repeat(mostTimers, reconciled(lens.Reconcile{ID: 1, RequeueAfter: near})), due: true},
		"a timer that leads to writes": {due: true, events: repeat(mostTimers+3, slices.Concat(
			reconciled(lens.Reconcile{ID: 1})[:1],
			[]*lens.Event{request(lens.Request{Verb: "update", Resource: deployments, Status: 200, Reconcile: 1})},
			reconciled(lens.Reconcile{ID: 1, RequeueAfter: near})[1:],
		))},
		"a timer that leads to writes without a change": {events: repeat(mostTimers+3, slices.Concat(
			reconciled(lens.Reconcile{ID: 1})[:1],
			[]*lens.Event{request(lens.Request{Verb: "update", Resource: deployments, Status: 200, Reconcile: 1, Change: &lens.Change{None: true}})},
			reconciled(lens.Reconcile{ID: 1, RequeueAfter: near})[1:],
		))},
		"a watch":                  {events: []*lens.Event{watching(frigates, true)}},
		"a watch that has ended":   {events: []*lens.Event{watching(frigates, true), watching(frigates, false)}, blind: true},
		"one of two that watch":    {events: []*lens.Event{watching(frigates, true), watching(frigates, true), watching(frigates, false)}},
		"a watch that came again":  {events: []*lens.Event{watching(frigates, true), watching(frigates, false), watching(frigates, true)}},
		"another watch":            {events: []*lens.Event{watching(frigates, true), watching(frigates, false), watching(deployments, true)}, blind: true},
		"a watch that was refused": {events: []*lens.Event{request(lens.Request{Verb: "watch", Resource: frigates, Status: 403, Open: true})}},
		"a process that ended": {events: slices.Concat(
			failed, reconciled(lens.Reconcile{ID: 2})[:1], []*lens.Event{watching(frigates, true), watching(frigates, false), {Process: &lens.Process{Ended: true}}},
		)},
	} {
		t.Run(name, func(t *testing.T) {
			got := following(test.events...).outlook(time.Now(), nearFuture, nil)
			if got.running != test.running || !got.due.IsZero() != test.due || got.stuck != test.stuck || got.blind != test.blind {
				t.Errorf("got running %d, due %v, stuck %v, blind %v; want %d, %v, %v, %v",
					got.running, !got.due.IsZero(), got.stuck, got.blind, test.running, test.due, test.stuck, test.blind)
			}
		})
	}
}

// TestRetriesBackOff is how controller-runtime retries.
func TestRetriesBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a real pause between two failures would count for the next one
		a := newActivity()
		for i := range 4 {
			for _, e := range reconciled(lens.Reconcile{ID: uint64(i), Error: "not now"}) {
				a.see(e)
			}
			now := time.Now()
			if wait, want := a.outlook(now, nearFuture, nil).due.Sub(now), firstRetry<<i; wait != want {
				t.Errorf("failure %d is retried after %s, want %s", i+1, wait, want)
			}
		}
	})
}

// TestWatchesThatEndForGood is about those of a single object, for example: nothing says that they are begun again.
func TestWatchesThatEndForGood(t *testing.T) {
	one := lens.Request{Verb: "watch", Resource: deployments, Status: 200, Open: true, Query: &lens.Query{FieldSelector: "metadata.name=victory"}}
	end := one
	end.Open = false
	a := following(watching(frigates, true), request(one), request(end))
	if !a.outlook(time.Now(), nearFuture, nil).blind {
		t.Error("it may begin again in a moment")
	}
	if a.outlook(time.Now().Add(longPause), nearFuture, nil).blind {
		t.Error("it is waited for without end")
	}
	a.see(watching(frigates, false))
	if !a.outlook(time.Now().Add(longPause), nearFuture, nil).blind {
		t.Error("a cache watches again, but not always at once")
	}
	if a.outlook(time.Now().Add(longestBlind), nearFuture, nil).blind {
		t.Error("a cache that was stopped is waited for without end")
	}
}

// TestRenewedLocksAreNoActivity is about operators that elect their leader with a ConfigMap, and watch ConfigMaps.
func TestRenewedLocksAreNoActivity(t *testing.T) {
	configMaps := lens.Resource{Resource: "configmaps", Namespace: "default", Name: "lock"}
	renewed := &lens.Change{Fields: []why.Change{{Path: "metadata.annotations[" + world.LeaderAnnotation + "]"}}}
	deliver := func(name string, change *lens.Change) *lens.Event {
		return &lens.Event{Delivery: &lens.Delivery{Resource: lens.Resource{Resource: "configmaps"}, Type: "MODIFIED", Object: &lens.Object{Namespace: "default", Name: name}, Change: change}}
	}
	a := newActivity()
	a.elections = &elections{}
	a.see(request(lens.Request{Verb: "update", Resource: configMaps, Status: 200, Change: renewed}))
	for about, test := range map[string]struct {
		event *lens.Event
		want  bool
	}{
		"a renewal":                        {deliver("other", renewed), false},
		"the first version of a lock":      {deliver("lock", nil), false},
		"a ConfigMap that is no lock":      {deliver("other", nil), true},
		"another change to such an object": {deliver("other", &lens.Change{Fields: []why.Change{{Path: "data.key"}}}), true},
	} {
		a.last = time.Time{}
		a.see(test.event)
		if got := !a.last.IsZero(); got != test.want {
			t.Errorf("%s: it counts as activity: %v", about, got)
		}
		s := &stage{}
		s.learnWrites(nil, []*lens.Event{test.event}, a.elections)
		if got := len(s.delivered) > 0; got != test.want {
			t.Errorf("%s: views of it are held back: %v", about, got)
		}
		if got := len(passingIn([]*lens.Event{test.event}, a.elections)) > 0; got != test.want {
			t.Errorf("%s: it is overlooked: %v", about, got)
		}
	}
}

// TestMarksMustArrive is about builds with marks whose controllers are not those of controller-runtime.
func TestMarksMustArrive(t *testing.T) {
	c := &campaign{}
	a := newActivity()
	a.marks = &c.marks
	a.see(request(lens.Request{Verb: "update", Resource: deployments, Status: 200}))
	if c.marks.Load() {
		t.Error("a write counts as a mark")
	}
	a.see(reconciled(lens.Reconcile{ID: 1})[0])
	if !c.marks.Load() {
		t.Error("a reconcile does not count as a mark")
	}
}

// TestOtherRateLimiters is about operators that wait longer between their attempts: the next one is expected after twice the pause
// before the last one. One that waits for seconds is stuck, until what is in its way is gone.
func TestOtherRateLimiters(t *testing.T) {
	a := newActivity()
	fail := func(pause time.Duration) outlook {
		for _, e := range reconciled(lens.Reconcile{ID: 1, Error: "not now"}) {
			if meeting := a.next[subject{"frigate", "default", "victory"}]; meeting != nil {
				meeting.failed = time.Now().Add(-pause)
			}
			a.see(e)
		}
		return a.outlook(time.Now(), nearFuture, nil)
	}
	const first = 100 * time.Millisecond
	for i, pause := range []time.Duration{0, first, 2 * first, 4 * first} {
		before := time.Now()
		if got := fail(pause); got.stuck || got.due.Sub(before) < 2*pause {
			t.Errorf("after %d failures: stuck %v, the next attempt is in %s; want %s", i+1, got.stuck, got.due.Sub(before), 2*pause)
		}
	}
	if got := fail(8 * first); !got.stuck || !got.due.IsZero() {
		t.Errorf("after a pause of %s it is not stuck", 8*first)
	}
	a.heal()
	if got := a.outlook(time.Now(), nearFuture, nil); got.stuck || got.due.IsZero() {
		t.Errorf("when nothing is in its way: stuck %v, waited for %v", got.stuck, !got.due.IsZero())
	}
	if got := fail(16 * first); !got.stuck {
		t.Error("it fails again, and is not stuck")
	}
}

// TestHowFarAheadTimersAreWaitedFor is farther where a mistake would cost more.
func TestHowFarAheadTimersAreWaitedFor(t *testing.T) {
	a := following(reconciled(lens.Reconcile{ID: 1, RequeueAfter: nearFuture + time.Second})...)
	if !a.outlook(time.Now(), nearFuture, nil).due.IsZero() || a.outlook(time.Now(), farFuture, nil).due.IsZero() {
		t.Errorf("a timer of %s is to be waited for only if it is worth it", nearFuture+time.Second)
	}
}

// TestNextAppointmentIsTheFirst is about several objects.
func TestNextAppointmentIsTheFirst(t *testing.T) {
	a := newActivity()
	for name, after := range map[string]time.Duration{"a": 2 * time.Second, "b": time.Second, "c": 2500 * time.Millisecond} {
		a.see(&lens.Event{Reconcile: &lens.Reconcile{Controller: "frigate", Name: name, Ended: true, RequeueAfter: after}})
	}
	now := time.Now()
	if wait := a.outlook(now, nearFuture, nil).due.Sub(now); wait > time.Second {
		t.Errorf("the next one is in %s, want a second at most", wait)
	}
}

// TestWhatCountsAsActivity is about what keeps a step from being over.
func TestWhatCountsAsActivity(t *testing.T) {
	for name, test := range map[string]struct {
		event  *lens.Event
		active bool
		writes int
	}{
		"a write":              {request(lens.Request{Verb: "patch", Resource: deployments, Status: 200}), true, 1},
		"without a change":     {request(lens.Request{Verb: "patch", Resource: deployments, Status: 200, Change: &lens.Change{None: true}}), false, 0},
		"that was refused":     {request(lens.Request{Verb: "patch", Resource: deployments, Status: 409}), true, 1},
		"of a lease":           {request(lens.Request{Verb: "update", Resource: leases, Status: 200}), false, 0},
		"of an event":          {request(lens.Request{Verb: "create", Resource: lens.Resource{Resource: "events"}, Status: 201}), false, 0},
		"that is a dry run":    {request(lens.Request{Verb: "create", Resource: deployments, Status: 201, DryRun: true}), false, 0},
		"a read":               {request(lens.Request{Verb: "get", Resource: deployments, Status: 200}), false, 0},
		"a watch begins":       {watching(frigates, true), true, 0},
		"a watch ends":         {watching(frigates, false), false, 0},
		"a delivery":           {&lens.Event{Delivery: &lens.Delivery{Resource: frigates, Type: "MODIFIED"}}, true, 0},
		"a bookmark":           {&lens.Event{Delivery: &lens.Delivery{Resource: frigates, Type: "BOOKMARK"}}, false, 0},
		"a delivery of leases": {&lens.Event{Delivery: &lens.Delivery{Resource: leases, Type: "MODIFIED"}}, false, 0},
		"a start":              {&lens.Event{Process: &lens.Process{Started: true}}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newActivity()
			a.last = time.Time{}
			a.see(test.event)
			if got := a.outlook(time.Now(), nearFuture, nil); got.last.IsZero() == test.active {
				t.Errorf("counts as activity: %v, want %v", !got.last.IsZero(), test.active)
			}
			if a.written() != test.writes {
				t.Errorf("%d writes, want %d", a.written(), test.writes)
			}
		})
	}
}

func TestNewsAreReported(t *testing.T) {
	a := newActivity()
	news := a.outlook(time.Now(), nearFuture, nil).news
	a.see(&lens.Event{Delivery: &lens.Delivery{Resource: frigates, Type: "BOOKMARK"}})
	select {
	case <-news:
		t.Fatal("a bookmark is no news")
	default:
	}
	a.see(&lens.Event{Delivery: &lens.Delivery{Resource: frigates, Type: "ADDED"}})
	select {
	case <-news:
	default:
		t.Error("a delivery is not reported")
	}
}

func TestPanicsAndRefusalsAreTakenOnce(t *testing.T) {
	refused := lens.Request{Verb: "patch", Resource: deployments, Status: 403, Message: `deployments.apps "a" is forbidden: User "system:serviceaccount:a:b" cannot patch resource "deployments"`}
	byUs := refused
	byUs.Fault = "refused: a quota"
	other := refused
	other.Resource, other.Path = lens.Resource{}, "/metrics"
	a := following(request(refused), request(byUs), request(other))
	for _, e := range reconciled(lens.Reconcile{ID: 1, Panicked: true, Error: "panic: nil map\n"}) {
		a.see(e)
	}
	panics, refusals := a.take()
	if !slices.Equal(panics, []string{"panic: nil map"}) {
		t.Errorf("got panics %q", panics)
	}
	if len(refusals) != 1 || refusals[0].Fault != "" || refusals[0].Path != "" {
		t.Errorf("got %d refusals, want the one that the cluster gave", len(refusals))
	}
	if panics, refusals = a.take(); len(panics)+len(refusals) > 0 {
		t.Error("they were told twice")
	}
}

func TestTimersThatAreNotWaitedFor(t *testing.T) {
	for after, want := range map[time.Duration]bool{time.Second: false, 30 * time.Second: true, time.Hour: false} {
		if got := following(reconciled(lens.Reconcile{ID: 1, RequeueAfter: after})...).outlook(time.Now(), nearFuture, nil); got.timer != want {
			t.Errorf("a timer of %s: got %v", after, got.timer)
		}
	}
}

func TestOnlyRolesRefuseRights(t *testing.T) {
	for message, want := range map[string]bool{
		`configmaps is forbidden: User "system:serviceaccount:a:b" cannot list resource "configmaps" in API group "" at the cluster scope`:                                       true,
		`roles.rbac.authorization.k8s.io "r" is forbidden: user "system:serviceaccount:a:b" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not held:`: true,
		`deployments.apps "a" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`:                        true,
		`persistentvolumeclaims "data-0" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize`:         false,
		`pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1`:                                                                         false,
		`pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`:                                                                     false,
	} {
		_, refused := following(request(lens.Request{Verb: "update", Resource: deployments, Status: 403, Message: message})).take()
		if len(refused) > 0 != want {
			t.Errorf("%s: got %v", message, len(refused) > 0)
		}
	}
}

// Operators of some years ago elect a leader by an annotation of a ConfigMap, every two seconds.
func TestElectionsAreNoActivity(t *testing.T) {
	path := "metadata.annotations[" + world.LeaderAnnotation + "]"
	for name, test := range map[string]struct {
		fields []why.Change
		want   int
	}{
		"renewed":             {[]why.Change{{Path: path}}, 0},
		"with something else": {[]why.Change{{Path: path}, {Path: "data.key"}}, 1},
		"another change":      {[]why.Change{{Path: "data.key"}}, 1},
		"nothing is known":    {nil, 1},
	} {
		configMaps := lens.Resource{Resource: "configmaps"}
		got := following(request(lens.Request{Verb: "update", Resource: configMaps, Status: 200, Change: &lens.Change{Fields: test.fields}})).written()
		if got != test.want {
			t.Errorf("%s: got %d writes", name, got)
		}
	}
}
