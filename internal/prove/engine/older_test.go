// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
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
	list := func(resource string, query lens.Query) *lens.Event {
		return &lens.Event{Request: &lens.Request{Verb: "list", Resource: lens.Resource{Group: "apps", Version: "v1", Resource: resource}, Query: &query}}
	}
	c.anyAge = anyAgeIn([]*lens.Event{list("deployments", lens.Query{}), {Read: &lens.Read{}}})
	if got := older(c); len(got) > 0 {
		t.Errorf("planned are %q", got)
	}
	begins := anyAgeIn([]*lens.Event{list("deployments", lens.Query{ResourceVersion: "0"})})
	c.anyAge = begins
	if got := older(c); !slices.Equal(got, []string{"0 older-list deployments"}) {
		t.Errorf("planned are %q", got)
	}
	c.anyAge, c.reference[1].anyAge = nil, begins
	if got := older(c); !slices.Equal(got, []string{"0 older-list deployments"}) {
		t.Errorf("if its cache begins later, planned are %q", got)
	}
}

// The spec from before a step tells most if the operator deleted something because of the change.
func TestOlderListsOfCustomResourcesBeforeDeletions(t *testing.T) {
	deployments := lens.Resource{Group: "apps", Resource: "deployments"}
	for name, test := range map[string]struct {
		resource lens.Resource
		deletes  bool
		want     int
	}{
		"a custom resource, and a deletion": {frigates, true, 0},
		"a custom resource":                 {frigates, false, 2},
		"another resource, and a deletion":  {deployments, true, 1},
	} {
		c := sailing()
		c.anyAge = map[lens.Resource]bool{test.resource: true}
		c.reference[1].delivered = []lens.Resource{test.resource}
		c.reference[1].beforeDelete = map[lens.Resource]bool{test.resource: test.deletes}
		for _, p := range olderPlans(c) {
			if p.Step == 1 && p.rank != test.want {
				t.Errorf("%s: the rank is %d, want %d", name, p.rank, test.want)
			}
		}
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

// TestOlderChildren has a workload that a step scales down and a later one up, so that a name comes back.
func TestOlderChildren(t *testing.T) {
	victory, crew := sceneObject("Frigate", "victory"), sceneObject("Secret", "crew")
	key := sceneKey(crew)
	gone := []terminatingVersion{{key, "7"}, {key, "8"}, {sceneKey(sceneObject("Secret", "other")), "9"}}
	full, empty := sceneState(victory, crew), sceneState(victory)
	secrets := lens.Resource{Group: key.Group, Resource: key.Resource}
	for name, test := range map[string]struct {
		states []world.State
		goneIn int
		anyAge bool
		want   string
	}{
		"it comes back":       {[]world.State{full, empty, full}, 1, true, "8"},
		"some steps later":    {[]world.State{full, empty, empty, full}, 1, true, "8"},
		"it stays away":       {[]world.State{full, empty, empty}, 1, true, ""},
		"it was never away":   {[]world.State{full, full, full}, 1, true, ""},
		"the first one":       {[]world.State{empty, empty, full}, 2, true, ""},
		"it lists the latest": {[]world.State{full, empty, full}, 1, false, ""},
	} {
		c := sceneOf([]*unstructured.Unstructured{victory}, nil, test.states...)
		last := len(test.states) - 1
		c.anyAge = map[lens.Resource]bool{secrets: test.anyAge}
		c.reference[test.goneIn].terminating, c.reference[last].delivered = gone, []lens.Resource{secrets}
		var got []string
		for _, p := range stalePlans(c) {
			if p.Variant == olderChild {
				got = append(got, c.lastGone(p.Step, *p.Resource))
			}
		}
		if strings.Join(got, ",") != test.want {
			t.Errorf("%s: shown are the versions %q, not %q", name, got, test.want)
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

// recreating is a run of an operator that finishes a custom resource, which was created again, only when its timer has gone off a few
// times. Until then a field differs from the undisturbed state.
func recreating(t *testing.T, period time.Duration, rounds int) (*run, *polling) {
	t.Helper()
	c := sailing()
	c.o.Settling = DefaultSettling
	c.o.Settling.Unmarked = c.o.Settling.Quiet // as with marks
	r := &run{campaign: c, family: "stale", world: worldOf(t, false), board: newSwitchboard(c.named), activity: newActivity()}
	c.reference[1].shape = r.shape()
	c.reference[1].shape.Objects["Frigate default/victory"]["spec.sails"] = "9"
	p := &polling{run: r, period: period, writes: rounds}
	c.o.Ignores = func(o *Observation) string {
		if o.Object == "Frigate default/victory" && int(p.rings.Load()) >= rounds {
			return "it has sails now"
		}
		return ""
	}
	p.start(t)
	return r, p
}

// TestRecreatedObjectsAreFinishedFirst is about the state that is compared with what a restarted operator makes of it.
func TestRecreatedObjectsAreFinishedFirst(t *testing.T) {
	for about, test := range map[string]struct {
		period time.Duration
		rounds int
		want   bool
	}{
		"at once":                      {10 * time.Second, 0, true},
		"when a timer has gone off":    {10 * time.Second, 1, true},
		"when it went off four times":  {15 * time.Second, 4, true},
		"later than can be waited for": {50 * time.Second, 1, false},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, p := recreating(t, test.period, test.rounds)
				_, err := r.recreated(t.Context(), 1)
				var unjudged *unjudgedError
				if test.want && err != nil || !test.want && !errors.As(err, &unjudged) {
					t.Errorf("got %v", err)
				}
				if test.want && int(p.rings.Load()) < test.rounds {
					t.Errorf("it is compared when the timer has gone off %d times", p.rings.Load())
				}
			})
		})
	}
}

// TestRecreatedObjectsOfAnOperatorThatFails is about an operator that waits for its application, which simulated pods do not run. It
// never finishes what is created again, but it may still delete it.
func TestRecreatedObjectsOfAnOperatorThatFails(t *testing.T) {
	other := failed(12, unusual)
	for _, e := range other {
		e.Reconcile.Name = "other"
	}
	for about, test := range map[string]struct {
		events []*lens.Event
		want   bool
	}{
		"as undisturbed":            {failed(12, usual), true},
		"at something else":         {failed(12, unusual), false},
		"at something else as well": {slices.Concat(failed(12, usual), other), false},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := sailing()
				c.o.Settling, c.failing = DefaultSettling, map[string]string{}
				c.learnFailing([]string{usual})
				r := &run{campaign: c, family: "stale", world: worldOf(t, true), board: newSwitchboard(c.named), activity: following(test.events...)}
				c.reference[1].shape = r.shape()
				c.reference[1].shape.Objects["Frigate default/victory"]["spec.sails"] = "9"
				_, err := r.recreated(t.Context(), 1)
				var unjudged *unjudgedError
				if test.want && err != nil || !test.want && !errors.As(err, &unjudged) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestOlderDeletionsAreExcused is about an operator that is stuck after the restart, as it is undisturbed.
func TestOlderDeletionsAreExcused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := waiting(12)
		r.activity = following(failed(12, usual)...)
		r.campaign.o.Steps = []Step{{Name: "create"}, {Name: "delete"}}
		r.campaign.mask, r.campaign.reference = compare.NewMask(), []*stage{{}, {}}
		wrong, excused, err := r.changedSince(t.Context(), &Plan{Family: "stale", Step: 1}, compare.Shape{Objects: map[string]compare.Fields{"Deployment default/victory": {"spec.replicas": "1"}}})
		if err != nil || len(wrong) > 0 || excused == "" {
			t.Errorf("got %+v, excused %q (%v)", wrong, excused, err)
		}
	})
}

// TestOlderDeletionsThatAreIgnored is about an operator that deletes a Deployment after the restart, and says so in a status.
func TestOlderDeletionsThatAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := sailing()
		c.o.Settling = DefaultSettling
		c.o.Ignores = func(o *Observation) string {
			if o.Object == "Deployment default/victory" {
				return "it is known"
			}
			return ""
		}
		ship := frigate()
		key, _ := find(c.reference[1].state, ship)
		want := c.shapeOf(world.State{key: ship.DeepCopy()})
		want.Objects["Deployment default/victory"] = compare.Fields{"spec.replicas": "1"}
		ship.Object["status"] = map[string]any{"ready": false}
		r := &run{campaign: c, family: "stale", world: world.Of(world.State{key: ship}), board: newSwitchboard(c.named), activity: newActivity()}
		wrong, _, err := r.changedSince(t.Context(), &Plan{Family: "stale", Step: 1}, want)
		if err != nil || len(wrong) > 0 {
			t.Errorf("got %+v (%v)", wrong, err)
		}
	})
}
