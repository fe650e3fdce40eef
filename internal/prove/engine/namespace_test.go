// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "testing"

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
