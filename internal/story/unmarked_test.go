// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// An operator whose module depends on controller-runtime is built to mark its reconciles, and has none if its
// controllers use client-go alone.
func TestAnOperatorThatMarksNothing(t *testing.T) {
	t.Parallel()
	var records []*why.Record
	teller := New(func(r *why.Record) { records = append(records, r) })
	add := func(after time.Duration, e lens.Event) {
		e.At = noon.Add(after)
		teller.Add(&e)
	}
	expect := func(after time.Duration, lacks bool) {
		t.Helper()
		if got := teller.LacksMarks(noon.Add(after)); got != lacks {
			t.Errorf("after %s: %t", after, got)
		}
	}
	started := lens.Event{Process: &lens.Process{Started: true, Instrumented: true}}
	add(0, started)
	add(0, wrote(1, 0, "update", lease))
	expect(time.Minute, false) // it has written nothing yet
	add(time.Minute, delivered("ADDED", shop("Shop", "web", "1"), 0))
	add(time.Minute, wrote(2, 0, "create", shop("Deployment", "web", "2", ownedByWeb)))
	expect(time.Minute+9*time.Second, false)
	expect(time.Minute+10*time.Second, true)
	teller.Settle(noon.Add(time.Minute + time.Second))
	if got := say(records); got != "1 Shop/web <created Shop/web> [create Deployment/web] succeeded" {
		t.Errorf("the story is %s", got)
	}
	add(2*time.Minute, begin(1, "web"))
	expect(time.Hour, false)
	add(3*time.Minute, started)
	expect(time.Hour, false)
	add(4*time.Minute, lens.Event{Process: &lens.Process{Started: true}})
	add(4*time.Minute, wrote(3, 0, "update", shop("Shop", "web", "3")))
	expect(time.Hour, false) // it was not built to mark anything, which was said when it was built
}

// TestRefusedCreates has operators that mark nothing. Many create their objects each time, and the answer that an object exists is
// what they expect.
func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status       int
		reason, want string
	}{
		"it exists": {409, "AlreadyExists", ""},
		"forbidden": {403, "Forbidden", "1 deployments/web <unknown> [create deployments/web] failed"},
	} {
		create := wrote(1, 0, "create", shop("Deployment", "web", "2"))
		create.Request.Object, create.Request.Status, create.Request.Reason = nil, test.status, test.reason
		if got := say(play(create)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// TestNews has an operator that marks nothing, and that repeats a write after something arrived: only what another client changed
// begins another reconcile.
func TestNews(t *testing.T) {
	t.Parallel()
	last := shop("Deployment", fmt.Sprint("web-", maxWrites), "90", ownedByWeb)
	listed, same := delivered("ADDED", shop("Shop", "web", "98"), 0), delivered("MODIFIED", shop("Shop", "web", "99"), 0)
	listed.Delivery.Initial, same.Delivery.Change = true, &lens.Change{None: true}
	for name, test := range map[string]struct {
		arrived lens.Event
		want    int
	}{
		"a change":                    {delivered("MODIFIED", shop("Shop", "web", "99"), 0, "spec.size"), 2},
		"an object":                   {delivered("ADDED", shop("Deployment", "other", "99", ownedByWeb), 0), 2},
		"an echo of a write too many": {delivered("ADDED", last, 100+maxWrites), 1},
		"a new list":                  {listed, 1},
		"a resync":                    {same, 1},
	} {
		events := []lens.Event{wrote(1, 0, "update", shop("Shop", "web", "2"))}
		for i := range uint64(maxWrites) {
			events = append(events, wrote(101+i, 0, "create", shop("Deployment", fmt.Sprint("web-", i+1), strconv.FormatUint(59+i, 10), ownedByWeb)))
		}
		events = append(events, test.arrived, wrote(200, 0, "update", shop("Shop", "web", "100")))
		if records := play(events...); len(records) != test.want {
			t.Errorf("%s: the story is\n%s", name, say(records))
		}
	}
}

func TestGrouping(t *testing.T) {
	t.Parallel()
	later := func(e lens.Event, after time.Duration) lens.Event {
		e.At = noon.Add(after)
		return e
	}
	refused := wrote(2, 0, "update", shop("Shop", "web", ""))
	refused.Request.Status, refused.Request.Reason = 409, "Conflict"
	// The answer to a conflict is a status without the object.
	conflict := wrote(3, 0, "update", shop("Deployment", "web", ""))
	conflict.Request.Object, conflict.Request.Status, conflict.Request.Reason = nil, 409, "Conflict"
	// A run belongs to a shop, and has a controller of its own.
	aRun := func(version string) *lens.Object {
		o := shop("Run", "web-1", version, ownedByWeb)
		o.Group = "example.com"
		return o
	}
	run := func(request uint64, version, field string) lens.Event {
		e := wrote(request, 0, "patch", aRun(version))
		e.Request.Change = &lens.Change{Fields: []why.Change{{Path: field}}}
		return e
	}
	// A watch of metadata does not say which kind it is about.
	metadata := delivered("ADDED", shop("Shop", "web", "1"), 0)
	metadata.Delivery.Object.Kind, metadata.Delivery.Resource = partial, lens.Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	throughStatus := run(3, "4", "metadata.generation")
	throughStatus.Request.Resource.Subresource = "status"
	for _, test := range []struct {
		name   string
		events []lens.Event
		want   string
	}{
		{"a conflict", []lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			wrote(1, 0, "create", shop("Deployment", "web", "2", ownedByWeb)),
			delivered("ADDED", shop("Deployment", "web", "2", ownedByWeb), 1),
			conflict,
		}, `1 Shop/web <created Shop/web> [create Deployment/web] [update Deployment/web] failed`},
		{"a watch of metadata", []lens.Event{
			metadata,
			wrote(1, 0, "update", shop("Shop", "web", "2")),
		}, `1 Shop/web <created Shop/web> [update Shop/web] succeeded`},
		{"the status of what it owns", []lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			wrote(1, 0, "create", aRun("2")),
			delivered("ADDED", aRun("2"), 1),
			run(2, "3", "status.phase"),
			throughStatus,
			run(4, "5", "spec.stop"),
		}, `1 Shop/web <created Shop/web> [create Run/web-1] [patch Run/web-1] succeeded
2 Run/web-1 <created Run/web-1 echo of 1.0> [patch Run/web-1] [patch Run/web-1] succeeded`},
		{"a pause", []lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			wrote(1, 0, "create", shop("Deployment", "web", "2", ownedByWeb)),
			wrote(2, 0, "create", shop("Service", "web", "3", ownedByWeb)),
			wrote(3, 0, "update", shop("Shop", "web", "4")),
			later(delivered("MODIFIED", shop("Shop", "web", "5"), 0, "spec.size"), time.Second),
			later(wrote(4, 0, "update", shop("Deployment", "web", "6", ownedByWeb)), time.Second+time.Millisecond),
		}, `1 Shop/web <created Shop/web> [create Deployment/web] [create Service/web] [update Shop/web] succeeded
2 Shop/web <updated Shop/web spec.size by kubectl> [update Deployment/web] succeeded`},
		{"the same write after a change of another client", []lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			wrote(1, 0, "create", shop("Deployment", "web", "2", ownedByWeb)),
			wrote(2, 0, "update", shop("Shop", "web", "3")),
			later(delivered("MODIFIED", shop("Deployment", "web", "4", ownedByWeb), 0, "status.replicas"), 50*time.Millisecond),
			later(wrote(3, 0, "update", shop("Shop", "web", "5")), 60*time.Millisecond),
		}, `1 Shop/web <created Shop/web> [create Deployment/web] [update Shop/web] succeeded
2 Shop/web <updated Deployment/web status.replicas by kubectl> [update Shop/web] succeeded`},
		{"the same write after an echo", []lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			wrote(1, 0, "update", shop("Shop", "web", "2")),
			later(delivered("MODIFIED", shop("Shop", "web", "2"), 1, "status.size"), 50*time.Millisecond),
			later(wrote(2, 0, "update", shop("Shop", "web", "3")), 60*time.Millisecond),
		}, `1 Shop/web <created Shop/web> [update Shop/web] [update Shop/web] succeeded`},
		{"another write after a change of another client", []lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			wrote(1, 0, "create", shop("Deployment", "web", "2", ownedByWeb)),
			later(delivered("MODIFIED", shop("Deployment", "web", "4", ownedByWeb), 0, "status.replicas"), 50*time.Millisecond),
			later(wrote(2, 0, "update", shop("Shop", "web", "3")), 60*time.Millisecond),
		}, `1 Shop/web <created Shop/web> [create Deployment/web] [update Shop/web] succeeded`},
		{"a second attempt", []lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			refused,
			later(delivered("MODIFIED", shop("Shop", "web", "2"), 0, "metadata.labels"), 50*time.Millisecond),
			later(wrote(3, 0, "update", shop("Shop", "web", "3")), 60*time.Millisecond),
		}, `1 Shop/web <created Shop/web> [update Shop/web] [update Shop/web] failed`},
	} {
		if got := say(play(test.events...)); got != test.want {
			t.Errorf("%s: %s\ninstead of\n%s", test.name, got, test.want)
		}
	}
}

// TestKindOfMetadata has a watch of metadata, whose events name no kind, and a reconcile that reads its object from the cache.
func TestKindOfMetadata(t *testing.T) {
	t.Parallel()
	metadata := delivered("ADDED", shop("Shop", "web", "1"), 0)
	metadata.Delivery.Object.Kind, metadata.Delivery.Resource = partial, lens.Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	other := delivered("ADDED", shop("Shop", "web", "1"), 0)
	other.Delivery.Object.Kind, other.Delivery.Resource = partial, lens.Resource{Group: "example.com", Version: "v1", Resource: "ferries"}
	got := say(play(metadata, other, begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, nil)))
	if want := "1 Shop/web <created Shop/web> succeeded"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
