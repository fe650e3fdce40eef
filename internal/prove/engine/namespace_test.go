// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"testing"
)

// TestNamespacesThatTheOperatorWatches has where a scenario goes that names no namespace.
func TestNamespacesThatTheOperatorWatches(t *testing.T) {
	for about, test := range map[string]struct {
		watched []string
		stays   bool
		want    string
	}{
		"all, or it is unknown":         {nil, false, "default"},
		"this one as well":              {[]string{"harbour", "default"}, false, "default"},
		"others":                        {[]string{"harbour", "sea"}, false, "harbour"},
		"others, and the scenario says": {[]string{"harbour"}, true, "default"},
	} {
		c := &campaign{o: Options{Namespace: "default"}}
		moved := "default"
		if !test.stays {
			c.o.Move = func(namespace string) { moved = namespace }
		}
		c.follow(test.watched)
		if moved != test.want || c.o.Namespace != test.want || !test.stays && c.isElsewhere(test.watched) {
			t.Errorf("%s: it is in %s and %s, want %s", about, moved, c.o.Namespace, test.want)
		}
	}
}

// TestAScenarioIsNotMovedToAndFro has an operator whose environment and log do not agree.
func TestAScenarioIsNotMovedToAndFro(t *testing.T) {
	c := &campaign{o: Options{Namespace: "default"}}
	moves := 0
	c.o.Move = func(string) { moves++ }
	for range 3 {
		c.follow([]string{"harbour"}) // its environment
		c.follow([]string{"sea"})     // its log
	}
	if moves != mostMoves || c.o.Namespace != "sea" || c.isElsewhere([]string{"harbour"}) {
		t.Errorf("it was moved %d times, to %s", moves, c.o.Namespace)
	}
}

// TestWhereAnUpgradeMakesItsObjects has an earlier release whose log says what it watches, in campaigns in which other
// families have used a namespace before or not.
func TestWhereAnUpgradeMakesItsObjects(t *testing.T) {
	for about, test := range map[string]struct {
		families []string
		stays    bool
		watched  []string // by the log
		want     []string // where the scenario is whenever it is run
		prepared int
	}{
		"only the upgrade":              {[]string{"upgrade"}, false, []string{"harbour"}, []string{"default", "harbour"}, 1},
		"all namespaces":                {[]string{"upgrade"}, false, nil, []string{"default"}, 0},
		"others, and the scenario says": {[]string{"upgrade"}, true, []string{"harbour"}, []string{"default"}, 0},
		"other families as well":        {nil, false, []string{"harbour"}, []string{"default"}, 0},
	} {
		at := "default"
		c := &campaign{o: Options{Namespace: at, Families: test.families, Earlier: &Earlier{Name: "v1"}}}
		if !test.stays {
			c.o.Move = func(namespace string) { at = namespace }
		}
		old := c.earlier(t.TempDir())
		var were []string
		prepared := 0
		err := old.whereWatched(func() error {
			were = append(were, at)
			if old.mayMove && old.isElsewhere(test.watched) {
				return fmt.Errorf("starting: %w", &elsewhereError{test.watched})
			}
			return nil
		}, func() error { prepared++; return nil })
		if err != nil || !slices.Equal(were, test.want) || prepared != test.prepared || old.mayMove {
			t.Errorf("%s: it was in %q, prepared %d times, %v", about, were, prepared, err)
		}
		if last := were[len(were)-1]; old.o.Namespace != last {
			t.Errorf("%s: the cluster has %s, and the scenario is in %s", about, old.o.Namespace, last)
		}
	}
}
