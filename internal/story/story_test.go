// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
	"github.com/opdock/opdock/why/diff"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// play tells a story of events, one for each millisecond.
func play(events ...lens.Event) (records []*why.Record) {
	t := New(func(r *why.Record) { records = append(records, r) })
	for i := range events {
		if events[i].At.IsZero() {
			events[i].At = noon.Add(time.Duration(i) * time.Millisecond)
		}
		t.Add(&events[i])
	}
	t.Flush()
	return records
}

func shop(kind, name, version string, owners ...lens.Owner) *lens.Object {
	group := "apps"
	if kind == "Shop" {
		group = "example.com"
	}
	return &lens.Object{Group: group, Version: "v1", Kind: kind, Namespace: "a", Name: name, UID: kind + name, ResourceVersion: version, Owners: owners}
}

// lease is what an operator renews to stay the leader, which is not a reconcile.
var lease = &lens.Object{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease", Namespace: "a", Name: "leader", UID: "lease", ResourceVersion: "9"}

var ownedByWeb = lens.Owner{Group: "example.com", Kind: "Shop", Name: "web", Controller: true}

func delivered(what string, object *lens.Object, write uint64, fields ...string) lens.Event {
	d := &lens.Delivery{Type: what, Object: object, Write: write}
	for _, field := range fields {
		if d.Change == nil {
			d.Change = &lens.Change{By: []why.Writer{{Manager: "kubectl"}}}
		}
		change := why.Change{Path: field, Old: "1", New: "2"}
		if field == "metadata.deletionTimestamp" {
			change.Old = "" // the deletion begins
		}
		d.Change.Fields = append(d.Change.Fields, change)
	}
	return lens.Event{Delivery: d}
}

// initial is an event with which a watch begins. The object has changed in a field since it was sent before, or is the same.
func initial(version, changed string) lens.Event {
	e := delivered("ADDED", shop("Shop", "web", version), 0)
	switch changed {
	case "":
	case "same":
		e.Delivery.Change = &lens.Change{None: true}
	default:
		e = delivered("ADDED", shop("Shop", "web", version), 0, changed)
	}
	e.Delivery.Initial = true
	return e
}

func begin(id uint64, name string) lens.Event {
	return lens.Event{Reconcile: &lens.Reconcile{ID: id, Controller: "shop", Namespace: "a", Name: name}}
}

func end(id uint64, change func(*lens.Reconcile)) lens.Event {
	r := &lens.Reconcile{ID: id, Controller: "shop", Namespace: "a", Ended: true, Duration: time.Millisecond}
	if change != nil {
		change(r)
	}
	return lens.Event{Reconcile: r}
}

func read(id uint64, group, kind, name string) lens.Event {
	return lens.Event{Read: &lens.Read{Reconcile: id, Group: group, Version: "v1", Kind: kind, Namespace: "a", Name: name}}
}

func wrote(request, reconcile uint64, verb string, object *lens.Object) lens.Event {
	return lens.Event{Request: &lens.Request{
		ID: request, Verb: verb, Reconcile: reconcile, Status: 200, Object: object,
		Resource: lens.Resource{Group: object.Group, Version: "v1", Resource: strings.ToLower(object.Kind) + "s", Namespace: "a", Name: object.Name},
	}}
}

// say tells records in few words.
func say(records []*why.Record) string {
	var text strings.Builder
	for _, r := range records {
		fmt.Fprintf(&text, "%d %s/%s", r.ID, r.Object.Kind, r.Object.Name)
		for _, c := range r.Causes {
			fmt.Fprintf(&text, " <%s", c.Type)
			if c.Object != nil {
				fmt.Fprintf(&text, " %s/%s", c.Object.Kind, c.Object.Name)
			}
			for _, change := range c.Changes {
				text.WriteString(" " + change.Path)
			}
			for _, by := range c.By {
				text.WriteString(" by " + by.Manager)
			}
			if c.Write != nil {
				fmt.Fprintf(&text, " echo of %d.%d", c.Write.Record, c.Write.Index)
			}
			text.WriteString(">")
		}
		for _, w := range r.Writes {
			fmt.Fprintf(&text, " [%s %s/%s]", w.Verb, w.Object.Kind, w.Object.Name)
		}
		fmt.Fprintf(&text, " %s", r.Outcome)
		for _, f := range r.Findings {
			fmt.Fprintf(&text, " %s", f.Type)
		}
		text.WriteString("\n")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func TestMarkedReconciles(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		events []lens.Event
		want   string
	}{
		"writes that do not say where they belong": {
			[]lens.Event{
				begin(1, "web"), begin(2, "db"), wrote(1, 0, "create", shop("Deployment", "x", "2", ownedByWeb)), wrote(2, 0, "update", shop("Shop", "db", "3")),
				wrote(3, 0, "update", lease), end(1, nil), end(2, nil),
			},
			"1 /web <unknown> [create Deployment/x] succeeded\n2 /db <unknown> [update Shop/db] succeeded",
		},
		"two that it may belong to": {
			[]lens.Event{begin(1, "web"), {Reconcile: &lens.Reconcile{ID: 2, Controller: "audit", Namespace: "a", Name: "web"}}, wrote(1, 0, "update", shop("Shop", "web", "3")), end(1, nil), end(2, nil)},
			"1 /web <unknown> succeeded\n2 /web <unknown> succeeded\n3 Shop/web <unknown> [update Shop/web] succeeded",
		},
		"a worker of client-go beside them": {
			[]lens.Event{
				{Process: &lens.Process{Started: true, Instrumented: true}}, begin(1, "web"), wrote(1, 1, "update", shop("Shop", "web", "2")), end(1, nil),
				delivered("ADDED", shop("Job", "nightly", "3"), 0), wrote(2, 0, "update", shop("Job", "nightly", "4")), wrote(3, 0, "update", lease),
			},
			"1 /web <unknown> [update Shop/web] succeeded\n2 Job/nightly <created Job/nightly> [update Job/nightly] succeeded",
		},
		"a write of a reconcile that began before the lens did": {
			[]lens.Event{begin(1, "web"), wrote(1, 7, "update", shop("Shop", "other", "2")), end(1, nil)},
			"1 /web <unknown> succeeded\n2 Shop/other <unknown> [update Shop/other] succeeded",
		},
		"a change leads to a write, and its echo to nothing": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(7, "web"), read(7, "example.com", "Shop", "web"), read(7, "apps", "Deployment", "web"),
			wrote(100, 7, "create", shop("Deployment", "web", "2", ownedByWeb)),
			delivered("ADDED", shop("Deployment", "web", "2", ownedByWeb), 100),
			end(7, nil),
			begin(8, "web"), read(8, "example.com", "Shop", "web"), end(8, nil),
			delivered("MODIFIED", shop("Shop", "web", "3"), 0, "spec.size"),
			begin(9, "web"), read(9, "example.com", "Shop", "web"), wrote(101, 9, "patch", shop("Deployment", "web", "4", ownedByWeb)), end(9, nil),
		}, `1 Shop/web <created Shop/web> [create Deployment/web] succeeded
2 Shop/web <created Deployment/web echo of 1.0> succeeded self-inflicted noop
3 Shop/web <updated Shop/web spec.size by kubectl> [patch Deployment/web] succeeded`},
		"it changed while nothing was watched": {[]lens.Event{
			initial("1", ""), begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, nil),
			initial("1", "same"), begin(2, "web"), read(2, "example.com", "Shop", "web"), end(2, nil),
			initial("2", "spec.size"), begin(3, "web"), read(3, "example.com", "Shop", "web"), end(3, nil),
			{Process: &lens.Process{Started: true}}, initial("3", "spec.size"), begin(4, "web"), read(4, "example.com", "Shop", "web"), end(4, nil),
		}, `1 Shop/web <listed Shop/web> succeeded noop
2 Shop/web <listed Shop/web> succeeded noop
3 Shop/web <updated Shop/web spec.size by kubectl> succeeded
4 Shop/web <listed Shop/web> succeeded noop`},
		"events of others are no causes": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0), delivered("ADDED", shop("Shop", "other", "1"), 0), delivered("ADDED", shop("Deployment", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, nil),
		}, `1 Shop/web <created Shop/web> succeeded`},
		"an error is retried, and a timer runs out": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, func(r *lens.Reconcile) { r.Error = "conflict" }),
			begin(2, "web"), end(2, func(r *lens.Reconcile) { r.RequeueAfter = time.Minute }),
			{At: noon.Add(time.Minute + 10*time.Millisecond), Reconcile: begin(3, "web").Reconcile},
			{At: noon.Add(time.Minute + 11*time.Millisecond), Reconcile: end(3, nil).Reconcile},
			{At: noon.Add(2 * time.Minute), Reconcile: begin(4, "web").Reconcile},
			{At: noon.Add(2*time.Minute + time.Second), Reconcile: end(4, func(r *lens.Reconcile) { r.Error, r.Panicked = "panic: x", true }).Reconcile},
		}, `1 Shop/web <created Shop/web> failed
2 Shop/web <retried> requeued
3 Shop/web <timer> succeeded
4 Shop/web <unknown> panicked`},
		"a timer runs out long after the echo of a write, which a predicate ignored": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), wrote(100, 1, "update", shop("Shop", "web", "2")),
			delivered("MODIFIED", shop("Shop", "web", "2"), 100, "status.at"),
			end(1, func(r *lens.Reconcile) { r.RequeueAfter = 10 * time.Second }),
			{At: noon.Add(10*time.Second + 7*time.Millisecond), Reconcile: begin(2, "web").Reconcile},
			{At: noon.Add(10*time.Second + 8*time.Millisecond), Reconcile: end(2, nil).Reconcile},
		}, `1 Shop/web <created Shop/web> [update Shop/web] requeued
2 Shop/web <timer> succeeded`},
		"the echo of a write leads to a reconcile long before the timer runs out": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), wrote(100, 1, "update", shop("Shop", "web", "2")),
			delivered("MODIFIED", shop("Shop", "web", "2"), 100, "spec.at"),
			end(1, func(r *lens.Reconcile) { r.RequeueAfter = 10 * time.Second }),
			begin(2, "web"), end(2, nil),
		}, `1 Shop/web <created Shop/web> [update Shop/web] requeued
2 Shop/web <updated Shop/web spec.at by kubectl echo of 1.0> succeeded self-inflicted noop`},
		"the echo of a write waits for a worker until shortly before the timer runs out": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), wrote(100, 1, "update", shop("Shop", "web", "2")),
			delivered("MODIFIED", shop("Shop", "web", "2"), 100, "spec.at"),
			end(1, func(r *lens.Reconcile) { r.RequeueAfter = 10 * time.Second }),
			{At: noon.Add(9 * time.Second), Reconcile: begin(2, "web").Reconcile},
			{At: noon.Add(9*time.Second + time.Millisecond), Reconcile: end(2, nil).Reconcile},
		}, `1 Shop/web <created Shop/web> [update Shop/web] requeued
2 Shop/web <updated Shop/web spec.at by kubectl echo of 1.0> succeeded self-inflicted noop`},
		"a timer runs out while a change waits for a worker": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, func(r *lens.Reconcile) { r.RequeueAfter = 10 * time.Second }),
			{At: noon.Add(4 * time.Second), Delivery: delivered("MODIFIED", shop("Shop", "web", "2"), 0, "spec.size").Delivery},
			{At: noon.Add(11 * time.Second), Reconcile: begin(2, "web").Reconcile},
			{At: noon.Add(11*time.Second + time.Millisecond), Reconcile: end(2, nil).Reconcile},
		}, `1 Shop/web <created Shop/web> requeued
2 Shop/web <timer> <updated Shop/web spec.size by kubectl> succeeded`},
		"a timer beside an error, which is ignored": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"),
			end(1, func(r *lens.Reconcile) { r.Error, r.Terminal, r.RequeueAfter = "boom", true, time.Second }),
			{At: noon.Add(time.Minute), Reconcile: begin(2, "web").Reconcile},
			{At: noon.Add(time.Minute + time.Second), Reconcile: end(2, func(r *lens.Reconcile) { r.Error, r.RequeueAfter = "boom", time.Second }).Reconcile},
			{At: noon.Add(time.Minute + 1500*time.Millisecond), Delivery: delivered("MODIFIED", shop("Shop", "web", "2"), 0, "spec.size").Delivery},
			{At: noon.Add(time.Minute + 2*time.Second), Reconcile: begin(3, "web").Reconcile},
			{At: noon.Add(time.Minute + 3*time.Second), Reconcile: end(3, nil).Reconcile},
		}, `1 Shop/web <created Shop/web> terminal
2 Shop/web <unknown> failed
3 Shop/web <retried> <updated Shop/web spec.size by kubectl> succeeded`},
		"the echo of a write is on its way to the queue when the next reconcile begins": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), delivered("MODIFIED", shop("Shop", "web", "2"), 0, "spec.size"),
			wrote(100, 1, "update", shop("Shop", "web", "3")), delivered("MODIFIED", shop("Shop", "web", "3"), 100, "status.at"), end(1, nil),
			begin(2, "web"), end(2, nil), begin(3, "web"), end(3, nil), begin(4, "web"), end(4, nil),
		}, `1 Shop/web <created Shop/web> [update Shop/web] succeeded
2 Shop/web <updated Shop/web spec.size by kubectl> <updated Shop/web status.at by kubectl echo of 1.0> succeeded
3 Shop/web <updated Shop/web status.at by kubectl echo of 1.0> succeeded self-inflicted noop
4 Shop/web <unknown> succeeded`},
		"the only event has led to the reconcile before": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0), begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, nil), begin(2, "web"), end(2, nil),
		}, `1 Shop/web <created Shop/web> succeeded
2 Shop/web <unknown> succeeded`},
		"a reconcile begins too late for what was on its way": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0), delivered("MODIFIED", shop("Shop", "web", "2"), 0, "spec.size"),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, nil),
			{At: noon.Add(time.Second), Reconcile: begin(2, "web").Reconcile}, {At: noon.Add(2 * time.Second), Reconcile: end(2, nil).Reconcile},
		}, `1 Shop/web <created Shop/web> <updated Shop/web spec.size by kubectl> succeeded
2 Shop/web <unknown> succeeded`},
		"what was read is a cause if nothing else is": {[]lens.Event{
			delivered("ADDED", shop("Shop", "web", "1"), 0),
			begin(1, "web"), read(1, "example.com", "Shop", "web"), read(1, "apps", "Config", "shared"), end(1, nil),
			delivered("MODIFIED", shop("Config", "shared", "2"), 0, "data.a"),
			begin(2, "web"), read(2, "example.com", "Shop", "web"), read(2, "apps", "Config", "shared"), end(2, nil),
		}, `1 Shop/web <created Shop/web> succeeded
2 Shop/web <updated Config/shared data.a by kubectl> succeeded`},
		"reconciles at the same time": {[]lens.Event{
			delivered("ADDED", shop("Shop", "a", "1"), 0), delivered("ADDED", shop("Shop", "b", "1"), 0),
			begin(1, "a"), begin(2, "b"), read(2, "example.com", "Shop", "b"), read(1, "example.com", "Shop", "a"),
			wrote(1, 2, "create", shop("Deployment", "b", "2")), wrote(2, 1, "create", shop("Deployment", "a", "2")), end(2, nil), end(1, nil),
		}, `2 Shop/b <created Shop/b> [create Deployment/b] succeeded
1 Shop/a <created Shop/a> [create Deployment/a] succeeded`},
	} {
		if got := say(play(one.events...)); got != one.want {
			t.Errorf("%s:\n%s\ninstead of\n%s", name, got, one.want)
		}
	}
}

// A reconcile without an end is the one to look at after a crash.
func TestReconcilesThatAreCutOff(t *testing.T) {
	t.Parallel()
	started := lens.Event{Process: &lens.Process{Started: true, Instrumented: true}}
	apply := wrote(1, 1, "apply", shop("Deployment", "web", "2", ownedByWeb))
	apply.Request.Duration = 20 * time.Millisecond
	records := play(
		started, delivered("ADDED", shop("Shop", "web", "1"), 0), begin(1, "web"), read(1, "example.com", "Shop", "web"), apply,
		started, delivered("ADDED", shop("Shop", "web", "1"), 0), begin(2, "web"), read(2, "example.com", "Shop", "web"),
	)
	want := `1 Shop/web <created Shop/web> [apply Deployment/web] failed
2 Shop/web <created Shop/web> failed`
	if got := say(records); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	// It is known to have run until it got the answer to what it wrote.
	if r := records[0]; r.Duration != 22*time.Millisecond || r.Error != "the operator ended before the reconcile did" {
		t.Errorf("the first took %s, and says %q", r.Duration, r.Error)
	}
	if r := records[1]; r.Duration != time.Millisecond || r.Error != "the recording ended before the reconcile did" {
		t.Errorf("the second took %s, and says %q", r.Duration, r.Error)
	}
}

// status is what an operator writes that triggers itself: each time another value in the status of its object.
func status(request, reconcile, version uint64) []lens.Event {
	object := shop("Shop", "web", strconv.FormatUint(version, 10))
	write := wrote(request, reconcile, "update", object)
	write.Request.Change = &lens.Change{Fields: []why.Change{{Path: "status.seen"}}}
	return []lens.Event{
		begin(reconcile, "web"), read(reconcile, "example.com", "Shop", "web"), write, end(reconcile, nil), delivered("MODIFIED", object, request, "status.seen"),
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	first := []lens.Event{delivered("ADDED", shop("Shop", "web", "1"), 0), begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, nil)}
	again := func(events ...lens.Event) []lens.Event {
		return append(append(slices.Clone(first), events...), begin(2, "web"), read(2, "example.com", "Shop", "web"), end(2, nil))
	}
	listed, same := delivered("ADDED", shop("Shop", "web", "1"), 0), delivered("MODIFIED", shop("Shop", "web", "2"), 0)
	listed.Delivery.Initial, same.Delivery.Change = true, &lens.Change{None: true}
	var loop []lens.Event
	for i := range uint64(7) {
		loop = append(loop, status(100+i, 10+i, 10+i)...)
	}
	var quarrel []lens.Event
	for i := range uint64(6) {
		change := delivered("MODIFIED", shop("Deployment", "web", strconv.FormatUint(20+i, 10), ownedByWeb), 0, "spec.replicas")
		change.Delivery.Change.By = []why.Writer{{Manager: []string{"operator", "cost-saver"}[i%2]}}
		if i%2 == 1 {
			field := &change.Delivery.Change.Fields[0]
			field.Old, field.New = field.New, field.Old
		}
		quarrel = append(quarrel, change, begin(10+i, "web"), read(10+i, "example.com", "Shop", "web"), wrote(200+i, 10+i, "update", shop("Service", "web", strconv.FormatUint(40+i, 10))), end(10+i, nil))
	}
	for name, one := range map[string]struct {
		events []lens.Event
		want   string
	}{
		"a new spec is news":            {again(delivered("MODIFIED", shop("Shop", "web", "2"), 0, "spec.size")), ""},
		"its own status is none":        {again(delivered("MODIFIED", shop("Shop", "web", "2"), 0, "status.ready")), "noop: nothing it reads has changed, and it wrote nothing"},
		"the status of a child is news": {again(delivered("MODIFIED", shop("Deployment", "web", "2", ownedByWeb), 0, "status.ready")), ""},
		"shown again, unchanged":        {again(same), "noop: nothing it reads has changed, and it wrote nothing"},
		"listed at the start, nothing to do": {
			[]lens.Event{listed, begin(1, "web"), read(1, "example.com", "Shop", "web"), end(1, nil)}, "noop: nothing it reads has changed, and it wrote nothing",
		},
		"it triggers itself": {append(slices.Clone(first), loop...), "self-inflicted: triggered only by its own writes; " +
			"loop: triggered itself 6 times in a row, by writing status.seen of Shop a/web"},
		"two writers quarrel": {append(slices.Clone(first), quarrel...), "loop: spec.replicas of Deployment a/web goes back and forth between cost-saver and operator"},
	} {
		records := play(one.events...)
		var said []string
		for _, f := range records[len(records)-1].Findings {
			said = append(said, string(f.Type)+": "+f.Message)
		}
		if got := strings.Join(said, "; "); got != one.want {
			t.Errorf("%s: %q instead of %q\n%s", name, got, one.want, say(records))
		}
	}
}

// Writes of an operator that marks nothing are found to trigger each other, too.
func TestFindingsOfGroups(t *testing.T) {
	t.Parallel()
	events := []lens.Event{delivered("ADDED", shop("Shop", "web", "1"), 0)}
	for i := range 7 {
		object := shop("Shop", "web", strconv.Itoa(10+i))
		write, echo := wrote(uint64(100+i), 0, "update", object), delivered("MODIFIED", object, uint64(100+i), "status.seen") //nolint:gosec // not negative
		write.At, echo.At = noon.Add(time.Duration(i+1)*time.Second), noon.Add(time.Duration(i+1)*time.Second+time.Millisecond)
		events = append(events, write, echo)
	}
	records := play(events...)
	last := records[len(records)-1]
	if len(records) != 7 || !slices.ContainsFunc(last.Findings, func(f why.Finding) bool { return f.Type == why.Loop }) {
		t.Errorf("%s", say(records))
	}
}

// Older operators renew a ConfigMap every few seconds to stay the leader, which is not a reconcile.
func TestLeaderElectionIsNoReconcile(t *testing.T) {
	t.Parallel()
	differ := diff.Differ{MaxChanges: 8, MaxValue: 100, MaxCompared: 1000}
	lock := func(version, holder string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "leader", "namespace": "a", "resourceVersion": version, "annotations": map[string]any{"control-plane.alpha.kubernetes.io/leader": holder},
		}}}
	}
	found := differ.Compare(lock("1", `{"renewTime":"1"}`), lock("2", `{"renewTime":"2"}`), false)
	renewed := wrote(1, 0, "update", shop("ConfigMap", "leader", "2"))
	renewed.Request.Change = &lens.Change{Fields: found.Changes}
	if got := say(play(renewed)); got != "" {
		t.Errorf("it is %s", got)
	}
}

// TestAResync has an operator without marks that writes again and again, as the informers of client-go let it after each resync.
// No event comes before those writes, so nothing may be taken for their cause.
func TestAResync(t *testing.T) {
	first, again := wrote(1, 0, "update", shop("Shop", "web", "2")), wrote(2, 0, "update", shop("Shop", "web", "2"))
	again.At = noon.Add(30 * time.Second)
	records := play(delivered("ADDED", shop("Shop", "web", "1"), 0), first, again)
	if len(records) != 2 || records[0].Causes[0].Type != why.Created || len(records[1].Causes) != 1 || records[1].Causes[0].Type != why.Unknown {
		t.Errorf("the story is %s", say(records))
	}
}
