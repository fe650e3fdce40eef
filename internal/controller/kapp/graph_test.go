// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"slices"
	"strings"
	"testing"
)

// parseGraph reads lines such as "web: db cache", and returns the names in their order, too.
func parseGraph(t *testing.T, text string) (graph, []string) {
	t.Helper()
	result := graph{}
	var names []string
	for line := range strings.SplitSeq(text, ";") {
		name, dependencies, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found {
			t.Fatalf("no colon in %q", line)
		}
		result[name] = strings.Fields(dependencies)
		names = append(names, name)
	}
	return result, names
}

func TestInOrder(t *testing.T) {
	for _, test := range []struct{ name, graph, want string }{
		{"one", "a:", "a"},
		{"no dependencies keep the order of the spec", "c:; a:; b:", "c a b"},
		{"a chain the wrong way round", "a: b; b: c; c:", "c b a"},
		{"a diamond", "top: left right; left: bottom; right: bottom; bottom:", "bottom left right top"},
		{"a cycle comes last", "a: b; b: a; c: a; d:", "d a b c"},
		{"an unknown one counts as there", "a: missing; b: a", "a b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, names := parseGraph(t, test.graph)
			if got := strings.Join(g.inOrder(names), " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestProblem(t *testing.T) {
	for _, test := range []struct {
		name, graph string
		want        map[string]string
	}{
		{"none", "a:; b: a; c: a b", map[string]string{}},
		{"unknown", "a: x; b: a", map[string]string{"a": `dependsOn names "x", which is not a component`}},
		{"itself", "a: a", map[string]string{"a": "a → a"}},
		{"a long cycle, and who depends on it", "c: a; b: c; a: b; d: a; e:", map[string]string{
			"a": "a → b → c → a", "b": "a → b → c → a", "c": "a → b → c → a",
		}},
		{"the shortest of two cycles", "a: b c; b: d; d: a; c: a", map[string]string{
			"a": "a → c → a", "c": "a → c → a", "b": "a → b → d → a", "d": "a → b → d → a",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, names := parseGraph(t, test.graph)
			for _, name := range names {
				want, has := test.want[name]
				err := g.problem(name)
				if (err != nil) != has || err != nil && !strings.HasSuffix(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", name, err, want)
				}
			}
		})
	}
}

func TestDependents(t *testing.T) {
	for _, test := range []struct {
		name, graph string
		want        map[string]string
	}{
		{"a chain", "a: b; b: c; c:", map[string]string{"b": "a", "c": "b"}},
		{"several", "z: db; a: db; db:", map[string]string{"db": "a z"}},
		{"a cycle has no order", "a: b; b: c; c: a; outside: a", map[string]string{"a": "outside"}},
		{"itself", "a: a", map[string]string{}},
		{"one that is gone", "a: b", map[string]string{"b": "a"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g, names := parseGraph(t, test.graph)
			for name := range test.want {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			for _, name := range names {
				if got := strings.Join(g.dependents(name), " "); got != test.want[name] {
					t.Errorf("%s: got %q, want %q", name, got, test.want[name])
				}
			}
		})
	}
}
