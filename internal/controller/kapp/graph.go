// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"fmt"
	"slices"
	"strings"
)

// graph maps each component to its dependencies.
type graph map[string][]string

// inOrder sorts the names so each comes after its dependencies, and otherwise keeps their order. Components of a
// cycle cannot be ordered and come last.
func (g graph) inOrder(names []string) []string {
	ordered := make([]string, 0, len(names))
	rest := slices.Clone(names)
	unplaced := map[string]bool{}
	for _, name := range names {
		unplaced[name] = true
	}
	for {
		next := slices.IndexFunc(rest, func(name string) bool {
			return !slices.ContainsFunc(g[name], func(dependency string) bool { return unplaced[dependency] })
		})
		if next < 0 {
			return append(ordered, rest...)
		}
		ordered = append(ordered, rest[next])
		delete(unplaced, rest[next])
		rest = slices.Delete(rest, next, next+1)
	}
}

// problem returns why a component cannot be ordered; nil if it can.
func (g graph) problem(name string) error {
	for _, dependency := range g[name] {
		if _, exists := g[dependency]; !exists {
			return fmt.Errorf("dependsOn names %q, which is not a component", dependency)
		}
	}
	if cycle := g.cycle(name); cycle != nil {
		return fmt.Errorf("components form a dependency cycle: %s", strings.Join(cycle, " → "))
	}
	return nil
}

// cycle returns the shortest path from a component back to itself; nil if there is none. It begins with the
// alphabetically first component, so all its components report the same cycle.
func (g graph) cycle(name string) []string {
	way := g.way(name, name)
	if way == nil {
		return nil
	}
	members := way[1:]
	first := slices.Index(members, slices.Min(members))
	cycle := slices.Concat(members[first:], members[:first])
	return append(cycle, cycle[0])
}

// way is a shortest way along dependencies, of at least one step; nil if there is none.
func (g graph) way(from, to string) []string {
	before := map[string]string{}
	for reached := []string{from}; len(reached) > 0; reached = reached[1:] {
		for _, next := range g[reached[0]] {
			if _, seen := before[next]; seen {
				continue
			}
			before[next] = reached[0]
			if next != to {
				reached = append(reached, next)
				continue
			}
			way := []string{to}
			for step := before[to]; step != from; step = before[step] {
				way = append(way, step)
			}
			way = append(way, from)
			slices.Reverse(way)
			return way
		}
	}
	return nil
}

// dependents are the components that must go before the named one, in the order of the alphabet. One that the named one
// itself depends on is left out: neither would ever go if each waited for the other.
func (g graph) dependents(name string) []string {
	var result []string
	for other, dependencies := range g {
		if other != name && slices.Contains(dependencies, name) && g.way(name, other) == nil {
			result = append(result, other)
		}
	}
	slices.Sort(result)
	return result
}
