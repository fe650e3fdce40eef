// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestGrow(t *testing.T) {
	app := of(Object{Kind: "AppService", Name: "web", Fleet: true})
	kapp := of(Object{Kind: "KAPP", Name: "store", Fleet: true})
	part := of(Object{Kind: "AppService", Name: "part", Fleet: true}, kapp)
	deployment := of(Object{Kind: "Deployment", Name: "web"}, app)
	older := of(Object{Kind: "ReplicaSet", Name: "web-a", Created: noon.Add(-time.Hour)}, deployment)
	newer := of(Object{Kind: "ReplicaSet", Name: "web-b", Created: noon}, deployment)
	missing := of(Object{Kind: "Deployment", Name: "missing"})
	first, second := of(Object{Kind: "Robot", Name: "first", Fleet: true}), of(Object{Kind: "Robot", Name: "second", Fleet: true})

	for name, test := range map[string]struct {
		objects []Object
		want    string
	}{
		"nothing":                         {nil, ""},
		"a root":                          {[]Object{app}, "web"},
		"an unrelated object is left out": {[]Object{app, missing}, "web"},
		"by owner references":             {[]Object{newer, deployment, app}, "web(web(web-b))"},
		"the newer ReplicaSet first":      {[]Object{older, newer, deployment, app}, "web(web(web-b web-a))"},
		"the fleet below the fleet":       {[]Object{app, part, kapp}, "store(part) web"},
		"the owner does not exist":        {[]Object{part, newer}, "part"},
		"the controller before others":    {[]Object{app, kapp, of(Object{Kind: "Service", Name: "s"}, app, kapp)}, "store web(s)"},
		"another owner without the first": {[]Object{kapp, of(Object{Kind: "Service", Name: "s"}, app, kapp)}, "store(s)"},
		"owners in a cycle":               {[]Object{of(first, second), of(second, first), app}, "web"},
		"its own owner":                   {[]Object{of(first, first), app}, "web"},
		"another namespace later":         {[]Object{of(Object{Kind: "AppService", Name: "a", Namespace: "team", Fleet: true}), app}, "web a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outline(Grow(test.objects)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// outline returns text such as "parent(child child)".
func outline(branches []*Branch) string {
	var texts []string
	for _, b := range branches {
		text := b.Name
		if len(b.Children) > 0 {
			text += "(" + outline(b.Children) + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func TestModelReportsChanges(t *testing.T) {
	m := NewModel()
	m.Set(of(Object{Kind: "AppService", Name: "web", Fleet: true}))
	m.AddEvent(Event{UID: "e"})
	m.Remove("AppService/default/web")
	<-m.Changed()
	select {
	case <-m.Changed():
		t.Error("several changes were signalled more than once")
	default:
	}
	if roots := m.Snapshot().Roots; len(roots) != 0 {
		t.Errorf("removed objects are still in the tree: %s", outline(roots))
	}
}

func TestModelForgetsOldEvents(t *testing.T) {
	m := NewModel()
	web := of(Object{Kind: "AppService", Name: "web", Fleet: true})
	m.Set(web)
	for i := range 10 * keptEvents {
		m.AddEvent(Event{UID: types.UID(time.Duration(i).String()), Time: noon.Add(time.Duration(i) * time.Second), Regarding: web.UID})
	}
	events := m.Snapshot().Events
	if len(events) > 2*keptEvents {
		t.Errorf("%d events are kept", len(events))
	}
	if latest := noon.Add((10*keptEvents - 1) * time.Second); !events[0].Time.Equal(latest) {
		t.Errorf("the latest event is from %v, want %v", events[0].Time, latest)
	}
}
