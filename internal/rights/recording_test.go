// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

// collected reads events as if they were in a file, in which the first one has a number.
func collected(t *testing.T, first uint64, events ...lens.Event) *Recording {
	t.Helper()
	var file strings.Builder
	encode := json.NewEncoder(&file)
	if err := encode.Encode(lens.Header{Opdock: "recording", Version: 1, Began: noon, Identity: operator}); err != nil {
		t.Fatal(err)
	}
	for i, event := range events {
		event.Seq, event.At = first+uint64(i), noon.Add(time.Duration(i)*time.Second)
		if err := encode.Encode(event); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Collect("one.jsonl", strings.NewReader(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestImpersonation(t *testing.T) {
	const (
		notAllowed = `users "alice" is forbidden: User "system:serviceaccount:ship-system:ship" cannot impersonate resource "users" in API group "" at the cluster scope`
		since135   = `pods is forbidden: User "system:serviceaccount:ship-system:ship" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "default"`
		lacks      = `pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"`
	)
	pods := lens.Resource{Version: "v1", Resource: "pods", Namespace: "default"}
	groups := []lens.Implied{{Verb: "impersonate", Resource: lens.Resource{Version: "v1", Resource: "groups", Name: "crew"}, Because: "a group"}}
	owner := []lens.Implied{{Verb: "update", Resource: lens.Resource{Group: "sea", Resource: "frigates", Subresource: "finalizers", Namespace: "default"}, Because: "an owner"}}
	for name, test := range map[string]struct {
		requests []lens.Request
		want     string
		note     string
	}{
		"what another user does is not needed": {
			[]lens.Request{{Verb: "list", Resource: pods, As: "alice", Status: 200}, {Verb: "create", Resource: pods, As: "system:serviceaccount:team-a:deployer", Status: 201, Implies: owner}},
			"impersonate serviceaccounts in team-a only deployer (implied)\nimpersonate users only alice (implied)\n",
			"2 requests were sent as another user",
		},
		"refused":                      {[]lens.Request{{Verb: "list", Resource: pods, As: "alice", Status: 403, Message: notAllowed}}, "impersonate users only alice (implied) (refused)\n", "1 request was sent as another user"},
		"refused since 1.35":           {[]lens.Request{{Verb: "list", Resource: pods, As: "alice", Status: 403, Message: since135}}, "impersonate users only alice (implied) (refused)\n", "1 request was sent as another user"},
		"groups are refused with it":   {[]lens.Request{{Verb: "list", Resource: pods, As: "alice", Status: 403, Message: notAllowed, Implies: groups}}, "impersonate groups only crew (implied) (refused)\nimpersonate users only alice (implied) (refused)\n", "1 request was sent as another user"},
		"the other user lacks a right": {[]lens.Request{{Verb: "list", Resource: pods, As: "alice", Status: 403, Message: lacks, Implies: groups}}, "impersonate groups only crew (implied)\nimpersonate users only alice (implied)\n", "1 request was sent as another user"},
		"one of two is refused": {
			[]lens.Request{{Verb: "list", Resource: pods, As: "bob", Status: 200}, {Verb: "list", Resource: pods, As: "alice", Status: 403, Message: notAllowed}},
			"impersonate users only bob (implied)\n", "2 requests were sent as another user",
		},
		"both do the same": {
			[]lens.Request{{Verb: "list", Resource: pods, As: "alice", Status: 200}, {Verb: "list", Resource: pods, Status: 200}},
			"list pods in default\nimpersonate users only alice (implied)\n", "1 request was sent as another user",
		},
		"a watch": {
			[]lens.Request{{Verb: "watch", Resource: pods, As: "alice", Status: 200, Open: true}, {Verb: "watch", Resource: pods, As: "alice", Status: 200}},
			"impersonate users only alice (implied)\n", "1 request was sent",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var events []lens.Event
			for i := range test.requests {
				events = append(events, lens.Event{Request: &test.requests[i]})
			}
			report := Compare(Merge([]*Recording{collected(t, 1, events...)}), Granted{}, Options{})
			if got := lines(report.Needs); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
			if !slices.ContainsFunc(report.Notes, func(note string) bool { return strings.Contains(note, test.note) }) {
				t.Errorf("got notes %q, want %q among them", report.Notes, test.note)
			}
		})
	}
}

// TestImpliedRightsOfRefusedRequests has a connection to a container that would also need create.
func TestImpliedRightsOfRefusedRequests(t *testing.T) {
	exec := lens.Resource{Version: "v1", Resource: "pods", Subresource: "exec", Namespace: "default", Name: "victory-0"}
	r := collected(t, 1, lens.Event{Request: &lens.Request{
		Verb: "get", Resource: exec, Status: 403, Implies: []lens.Implied{{Verb: "create", Resource: exec, Because: "a connection by WebSocket"}},
	}})
	if got, want := lines(Compare(Merge([]*Recording{r}), Granted{}, Options{}).Needs), "get pods/exec in default (refused)\ncreate pods/exec in default (implied) (refused)\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestMissingEvents has a recording from which older events were dropped, as one is that has reached its greatest size: which
// objects were reconciled is not known.
func TestMissingEvents(t *testing.T) {
	system := func(resource, name string) lens.Resource {
		resource, group, _ := strings.Cut(resource, ".")
		return lens.Resource{Group: group, Version: "v1", Resource: resource, Namespace: "ship-system", Name: name}
	}
	elsewhere := system("services", "x")
	elsewhere.Namespace = "team-a"
	hooks := system("validatingwebhookconfigurations.admissionregistration.k8s.io", "hooks")
	hooks.Namespace = ""
	events := []lens.Event{
		{Reconcile: &lens.Reconcile{ID: 3, Controller: "frigate", Kind: "Frigate", Namespace: "default", Name: "victory"}},
		{Request: &lens.Request{Verb: "get", Resource: system("secrets", "key"), Status: 200}},
		{Request: &lens.Request{Verb: "update", Resource: system("leases.coordination.k8s.io", "ship-lock"), Status: 200}},
		{Request: &lens.Request{Verb: "patch", Resource: elsewhere, Status: 200}},
		{Request: &lens.Request{Verb: "update", Resource: hooks, Status: 200}},
		{Request: &lens.Request{Verb: "get", Resource: elsewhere, As: "alice", Status: 200}},
	}
	const (
		leases = "get leases.coordination.k8s.io in ship-system only ship-lock (implied) (leader election)\n" +
			"create leases.coordination.k8s.io in ship-system (implied) (leader election)\n" +
			"update leases.coordination.k8s.io in ship-system only ship-lock (leader election)\n"
		alice = "impersonate users only alice (implied)\n"
		whole = "get secrets in ship-system only key\npatch services in team-a\n" + alice +
			"update validatingwebhookconfigurations.admissionregistration.k8s.io only hooks\n" + leases
		rest = "get secrets in ship-system\npatch services\n" + alice + "update validatingwebhookconfigurations.admissionregistration.k8s.io\n" + leases
		note = "recording one.jsonl lacks 100 of its events: "
	)
	for first, want := range map[uint64]string{1: whole, 101: rest} {
		report := Compare(Merge([]*Recording{collected(t, first, events...)}), Granted{}, Options{})
		if got := lines(report.Needs); got != want {
			t.Errorf("from event %d, got\n%swant\n%s", first, got, want)
		}
		if noted := slices.ContainsFunc(report.Notes, func(one string) bool { return strings.HasPrefix(one, note) }); noted != (first > 1) {
			t.Errorf("from event %d, notes are %q", first, report.Notes)
		}
	}
	report := Compare(Merge([]*Recording{collected(t, 1, append(events, lens.Event{Lost: &lens.Lost{Events: 2, Reason: "the lens was overloaded"}})...)}), Granted{}, Options{})
	if got := lines(report.Needs); got != rest {
		t.Errorf("with lost events, got\n%swant\n%s", got, rest)
	}
}

func TestOfOtherProgram(t *testing.T) {
	for command, want := range map[string]bool{
		"./bin/manager":                         false,
		"/usr/bin/kubectl get pods":             true,
		"opdock kubectl get pods":               true,
		"./bin/opdock kubectl --name ship edit": true,
		"./bin/opdock run":                      false,
		"opdock":                                false,
		"./bin/manager kubectl":                 false,
	} {
		header := lens.Header{Traced: true, Identity: "system:serviceaccount:a:b", Command: strings.Fields(command)}
		if got := OfOtherProgram(header, header.Identity) != ""; got != want {
			t.Errorf("%s: %t", command, got)
		}
	}
}
