// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"github.com/opdock/opdock/internal/lens"
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
