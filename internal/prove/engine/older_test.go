// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

func TestClientsThatTakeAnOlderList(t *testing.T) {
	for name, test := range map[string]struct {
		verb  string
		query *lens.Query
		want  bool
	}{
		"a list of any age":                 {"list", &lens.Query{ResourceVersion: "0"}, true},
		"the same, in other words":          {"list", &lens.Query{ResourceVersion: "0", Match: "NotOlderThan"}, true},
		"a list of the latest state":        {"list", &lens.Query{}, false},
		"a list not older than what it saw": {"list", &lens.Query{ResourceVersion: "17", Match: "NotOlderThan"}, false},
		"the next page of a list":           {"list", &lens.Query{ResourceVersion: "0", Continue: true}, false},
		"a watch that begins with a list":   {"watch", &lens.Query{ResourceVersion: "0", InitialEvents: true}, false},
		"nothing is known about it":         {"list", nil, false},
	} {
		if got := takesAnyAge(&lens.Request{Verb: test.verb, Query: test.query}); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// An operator whose clients list the latest state must never be shown an older one.
func TestOlderListsOnlyWhereClientsTakeThem(t *testing.T) {
	older := func(c *campaign) (plans []string) {
		for _, p := range stalePlans(c) {
			if p.Variant == olderList {
				plans = append(plans, summary(p))
			}
		}
		return plans
	}
	c := sailing()
	c.anyAge = map[lens.Resource]bool{}
	list := func(resource string, query lens.Query) *lens.Event {
		return &lens.Event{Request: &lens.Request{Verb: "list", Resource: lens.Resource{Group: "apps", Version: "v1", Resource: resource}, Query: &query}}
	}
	c.learnLists([]*lens.Event{list("deployments", lens.Query{}), {Read: &lens.Read{}}})
	if got := older(c); len(got) > 0 {
		t.Errorf("planned are %q", got)
	}
	c.learnLists([]*lens.Event{list("deployments", lens.Query{ResourceVersion: "0"})})
	if got := older(c); !slices.Equal(got, []string{"0 older-list deployments"}) {
		t.Errorf("planned are %q", got)
	}
}

// A custom resource without a finalizer is gone at once: there is no view in which it is being deleted.
func TestOlderDeletions(t *testing.T) {
	victory, held := sceneObject("Frigate", "victory"), sceneObject("Frigate", "victory")
	held.SetFinalizers([]string{"sea.example.com/anchor"})
	for name, test := range map[string]struct {
		before, after world.State
		anyAge        bool
		want          int
	}{
		"deleted":             {sceneState(held), sceneState(), true, 1},
		"it stays":            {sceneState(held), sceneState(held), true, 0},
		"without a finalizer": {sceneState(victory), sceneState(), true, 0},
		"lists the latest":    {sceneState(held), sceneState(), false, 0},
	} {
		c := sceneOf([]*unstructured.Unstructured{victory}, nil, test.before, test.after)
		c.anyAge = map[lens.Resource]bool{frigates: test.anyAge}
		var got []string
		for _, p := range stalePlans(c) {
			got = append(got, summary(p))
		}
		if len(got) != test.want || test.want > 0 && got[0] != "1 older-deletion frigates" {
			t.Errorf("%s: planned are %q", name, got)
		}
	}
}

func TestVersionsInWhichAnObjectIsBeingDeleted(t *testing.T) {
	change := func(kind, how, version string, deleting bool) world.Change {
		object := sceneObject(kind, "victory")
		object.SetResourceVersion(version)
		if deleting {
			object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		}
		return world.Change{Key: sceneKey(object), Type: how, Object: object}
	}
	changes := []world.Change{
		change("Frigate", "MODIFIED", "1", false), change("Secret", "MODIFIED", "2", true), change("Frigate", "MODIFIED", "3", true),
		change("Frigate", "MODIFIED", "4", true), change("Frigate", "DELETED", "5", true),
	}
	if got := terminating(changes, frigates); got != "3" {
		t.Errorf("got version %q", got)
	}
	if got := terminating(changes[4:], frigates); got != "" {
		t.Errorf("got version %q, in which it was gone already", got)
	}
}
