// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
)

// send passes a request and its answer through a switchboard.
func send(s *switchboard, call *lens.Call, status int) (request, answer lens.Verdict) {
	request = s.Request(context.Background(), call)
	return request, s.Answer(context.Background(), call, status)
}

var lastID uint64

func call(verb string, resource lens.Resource, body map[string]any) *lens.Call {
	lastID++
	c := &lens.Call{Request: lens.Request{ID: lastID, Verb: verb, Resource: resource}}
	if body != nil {
		c.Body = func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: body} }
	}
	return c
}

func metadata(fields map[string]any) map[string]any { return map[string]any{"metadata": fields} }

func TestMomentsHaveNames(t *testing.T) {
	in := lens.Resource{Resource: "configmaps", Namespace: "default"}
	named := lens.Resource{Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "default", Name: "victory"}
	for want, test := range map[string]*lens.Call{
		"update deployments/status victory": call("update", named, metadata(map[string]any{"name": "other"})),
		"create configmaps log":             call("create", in, metadata(map[string]any{"name": "log", "generateName": "l"})),
		"create configmaps log-*":           call("create", in, metadata(map[string]any{"generateName": "log-"})),
		"create configmaps":                 call("create", in, metadata(map[string]any{})),
		"deletecollection configmaps":       call("deletecollection", in, nil),
	} {
		if got := momentOf(test).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	unreadable := call("create", in, nil)
	unreadable.Body = func() *unstructured.Unstructured { return nil }
	if got := momentOf(unreadable); got.Name != "" {
		t.Errorf("a body that cannot be read gives the name %q", got.Name)
	}
}

func TestOrdinal(t *testing.T) {
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 10: "10th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th", 113: "113th", 123: "123rd"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
	if got := (Moment{Verb: "patch", Resource: "pods", Name: "a", Nth: 2}).String(); got != "patch pods a (the 2nd in this step)" {
		t.Errorf("got %q", got)
	}
}

func TestWritesAreCountedByKind(t *testing.T) {
	s := newSwitchboard(func(m Moment) Moment { return m })
	s.step(nil)
	config := func(name string) *lens.Call {
		return call("create", lens.Resource{Resource: "configmaps", Namespace: "default"}, metadata(map[string]any{"name": name}))
	}
	random := func() *lens.Call {
		return call("create", lens.Resource{Resource: "pods", Namespace: "default"}, metadata(map[string]any{"generateName": "a-"}))
	}
	send(s, config("a"), 201)
	send(s, config("b"), 201)
	send(s, config("a"), 409) // counts, but nothing was written
	send(s, config("a"), 201)
	send(s, random(), 201)
	send(s, random(), 201)
	send(s, call("get", deployments, nil), 200)
	send(s, call("update", leases, nil), 200)
	dry := call("create", deployments, nil)
	dry.Request.DryRun = true
	send(s, dry, 201)
	expectWrites(t, s, "create configmaps a", "create configmaps b", "create configmaps a (the 3rd in this step)", "create pods a-*", "create pods a-* (the 2nd in this step)")

	s.step(nil)
	send(s, config("a"), 201)
	expectWrites(t, s, "create configmaps a")
}

func expectWrites(t *testing.T, s *switchboard, want ...string) {
	t.Helper()
	var got []string
	for _, one := range s.writes() {
		got = append(got, one.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFaultsAreAsked(t *testing.T) {
	var asked []string
	verdict := lens.Verdict{Action: lens.Abort, Say: "test"}
	f := &faults{
		request: func(_ context.Context, m Moment) lens.Verdict {
			asked = append(asked, "request "+m.String())
			return verdict
		},
		answer: func(_ context.Context, m Moment, _ int) lens.Verdict {
			asked = append(asked, "answer "+m.String())
			return verdict
		},
		any: func(_ context.Context, c *lens.Call) lens.Verdict {
			asked = append(asked, "any "+c.Request.Verb)
			return verdict
		},
		deliver: func(_ context.Context, _ *lens.Call, frame *lens.Frame) lens.Verdict {
			asked = append(asked, "deliver "+frame.Type)
			return verdict
		},
	}
	s := newSwitchboard(func(m Moment) Moment { return m })
	watch := call("watch", frigates, nil)
	all := func() {
		send(s, call("patch", deployments, nil), 200)
		send(s, call("get", deployments, nil), 200)
		s.Deliver(context.Background(), watch, &lens.Frame{Type: "ADDED"})
	}
	all() // nothing is disturbed before the first step
	s.step(f)
	all()
	s.calm()
	all()
	want := []string{
		"request patch deployments victory", "answer patch deployments victory", "any get", "deliver ADDED",
	}
	if !slices.Equal(asked, want) {
		t.Errorf("got %q, want %q", asked, want)
	}
	if s.wasHit() {
		t.Error("the fault was not reported")
	}
	if s.hit(); !s.wasHit() {
		t.Error("a fault that happened is forgotten")
	}
	s.step(&faults{})
	all() // functions that are nil let everything pass
}

func TestEventsThatAreHeld(t *testing.T) {
	board := newSwitchboard(func(m Moment) Moment { return m })
	if board.holds() {
		t.Error("nothing is disturbed, and something is held")
	}
	g := &gate{open: make(chan struct{})}
	board.step(&faults{holds: g.isClosed})
	if !board.holds() {
		t.Error("the gate is closed, and nothing is held")
	}
	g.release()
	if board.holds() {
		t.Error("the gate is open, and something is held")
	}
}
