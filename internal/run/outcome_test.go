// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/tree"
)

func fleetObject(kind, namespace, name string, o tree.Object) tree.Object {
	o.Kind, o.Namespace, o.Name, o.Fleet = kind, namespace, name, true
	o.UID = types.UID(kind + namespace + name)
	return o
}

func TestRunIsReadyWhenEverySampleIs(t *testing.T) {
	ready := func(generation int64) tree.Object {
		return tree.Object{Generation: generation, State: tree.Good, Status: "Ready"}
	}
	goals := []Goal{
		{Kind: "AppService", Namespace: "default", Name: "web", Generation: 2},
		{Kind: "AppService", Namespace: "default", Name: "shop"},
		{Kind: "Robot", Namespace: "default", Name: "gone"},
	}
	web, shop, gone := func(o tree.Object) tree.Object { return fleetObject("AppService", "default", "web", o) },
		fleetObject("AppService", "default", "shop", ready(1)), fleetObject("Robot", "default", "gone", ready(1))
	for name, test := range map[string]struct {
		objects []tree.Object
		want    bool
	}{
		"all":                        {[]tree.Object{web(ready(2)), shop, gone}, true},
		"one is missing":             {[]tree.Object{web(ready(2)), shop}, false},
		"one is seen too early":      {[]tree.Object{web(ready(1)), shop, gone}, false},
		"one is busy":                {[]tree.Object{web(tree.Object{Generation: 2, State: tree.Busy}), shop, gone}, false},
		"others do not matter":       {[]tree.Object{web(ready(2)), shop, gone, fleetObject("Robot", "default", "x", tree.Object{State: tree.Bad})}, true},
		"nor do those of other name": {[]tree.Object{web(ready(2)), shop, fleetObject("Robot", "team-b", "gone", ready(1))}, false},
	} {
		t.Run(name, func(t *testing.T) {
			model := tree.NewModel()
			for _, o := range test.objects {
				model.Set(o)
			}
			if got := Outcome(goals, "default", model.Snapshot()).Ready(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
