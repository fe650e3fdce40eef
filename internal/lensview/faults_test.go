// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lensview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

// TestFaultsAreMarked is about a disturbed run: what a fault did is marked as wrong, with the name of the fault, even if the server
// took the write. What is around it is not.
func TestFaultsAreMarked(t *testing.T) {
	t.Parallel()
	maps := lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "a", Name: "web"}
	shops := lens.Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	update := func(status int, message, fault string) lens.Event {
		return lens.Event{Request: &lens.Request{ID: 1, Verb: "update", Resource: maps, Status: status, Message: message, Fault: fault}}
	}
	event := func(fault string) lens.Event {
		return lens.Event{Delivery: &lens.Delivery{Watch: 9, Resource: shops, Type: "MODIFIED", Object: shop("7"), Write: 1, Fault: fault}}
	}
	ended := func(fault string) lens.Event {
		return lens.Event{Request: &lens.Request{ID: 9, Verb: "watch", Resource: shops, Status: 200, Fault: fault}}
	}
	view := New(lens.Header{})
	for _, test := range []struct {
		event lens.Event
		want  string
	}{
		{update(200, "", ""), "update 200, refused: false"},
		{update(200, "", "killed after the answer"), "update 200, refused: true, fault: killed after the answer"},
		{update(409, "no", "refused: a conflict"), "update 409, refused: true, fault: refused: a conflict"},
		{update(409, "no", ""), "update 409, refused: true, no"},
		{event("held back"), "watch 0, refused: true, fault: held back"},
		{event(""), "watch 0, refused: false, own write"},
		{ended("the watch breaks"), "watch 200, refused: true, fault: the watch breaks"},
		{ended(""), "not shown"},
	} {
		got := "not shown"
		if x, shown := view.exchangeOf(&test.event); shown {
			got = strings.TrimSuffix(fmt.Sprintf("%s %d, refused: %v, %s", x.Verb, x.Status, x.Refused, x.Message+x.Note), ", ")
		}
		if got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestTheEndOfARecording has a write that deletes its object, whose answer comes after the event; and a watch that began before
// everything else, and is told of last.
func TestTheEndOfARecording(t *testing.T) {
	t.Parallel()
	shops := lens.Resource{Group: "example.com", Version: "v1", Resource: "shops"}
	deleting := shop("8")
	deleting.Deleting = true
	other := &lens.Object{Group: "example.com", Version: "v1", Kind: "Shop", Namespace: "a", Name: "other", UID: "u7"}
	options, _, err := Open(record(t, "shop", []lens.Event{
		{Delivery: &lens.Delivery{Watch: 1, Resource: shops, Type: "ADDED", Object: shop("5"), Initial: true}},
		{Delivery: &lens.Delivery{Watch: 1, Resource: shops, Type: "ADDED", Object: other, Initial: true}},
		{Delivery: &lens.Delivery{Watch: 1, Resource: shops, Type: "DELETED", Object: deleting}},
		{Request: &lens.Request{ID: 2, Verb: "update", Resource: shops, Object: deleting, Status: 200}},
		{At: began, Request: &lens.Request{ID: 1, Verb: "watch", Resource: shops, Status: 200, Duration: time.Minute}},
	}), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := began.Add(3 * time.Second); !options.Until.Equal(want) {
		t.Errorf("it ends at %s, and not at %s", options.Until, want)
	}
	var names []string
	for _, one := range options.Tree.Snapshot().Fleet {
		names = append(names, one.Name)
	}
	if !slices.Equal(names, []string{"other"}) {
		t.Errorf("at the end there are %q", names)
	}
}

// TestObjectsThatComeBack has a watch with a selector: the object leaves the selection, which looks like a deletion, and comes back, or
// another watch still reports it.
func TestObjectsThatComeBack(t *testing.T) {
	t.Parallel()
	event := func(watch uint64, what, version string) lens.Event {
		shops := lens.Resource{Group: "example.com", Version: "v1", Resource: "shops"}
		return lens.Event{Delivery: &lens.Delivery{Watch: watch, Resource: shops, Type: what, Object: shop(version)}}
	}
	for name, events := range map[string][]lens.Event{
		"one watch":   {event(1, "ADDED", "5"), event(1, "DELETED", "6"), event(1, "ADDED", "7"), event(1, "MODIFIED", "8")},
		"two watches": {event(1, "ADDED", "5"), event(2, "ADDED", "5"), event(2, "DELETED", "6"), event(1, "MODIFIED", "6"), event(1, "MODIFIED", "7")},
	} {
		options, _, err := Open(record(t, "shop", events), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if found := options.Tree.Snapshot().Fleet; len(found) != 1 || found[0].Name != "web" {
			t.Errorf("%s: at the end there are %+v", name, found)
		}
	}
}
