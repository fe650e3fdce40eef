// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/opdock/opdock/internal/lens"
)

// Summary prints what there was in all.
func Summary(out io.Writer, t lens.Totals) error {
	requests, failed := uint64(0), uint64(0)
	for _, u := range t.Uses {
		if u.Implied == "" {
			requests += u.Count
			failed += u.Forbidden + u.Conflicts + u.Failed
		}
	}
	seconds := max(t.Last.Sub(t.Since).Seconds(), 0.001)
	fmt.Fprintf(out, "%s in %.1f s (%.1f per second), %d failed; %s, %d of them about its own writes\n",
		Count(requests, "request"), seconds, float64(requests)/seconds, failed, Count(t.Deliveries, "watch event"), t.Echoes)
	if requests == 0 {
		return nil
	}
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESOURCE\tVERB\tCOUNT\tFAILED\tNOTES")
	for _, u := range t.Uses {
		if u.Implied != "" {
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", useName(u), u.Verb, u.Count, orDash(u.Forbidden+u.Conflicts+u.Failed), strings.Join(notes(u), ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if advice := advise(t); len(advice) > 0 {
		fmt.Fprintln(out)
		for _, line := range advice {
			fmt.Fprintln(out, line)
		}
	}
	if t.Lost > 0 {
		fmt.Fprintf(out, "\n%s could not be recorded: the lens was overloaded.\n", Count(t.Lost, "event"))
	}
	return nil
}

// Count returns a number of things in words.
func Count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func orDash(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

func useName(u *lens.Use) string {
	if u.Path != "" {
		return u.Path
	}
	return placeOf(lens.Resource{Group: u.Group, Resource: u.Resource, Subresource: u.Subresource})
}

func notes(u *lens.Use) (said []string) {
	if u.As {
		said = append(said, "as another user")
	}
	for _, one := range []struct {
		count uint64
		words string
	}{
		{u.Forbidden, "forbidden"}, {u.Conflicts, "conflicts"}, {u.NoChange, "without a change"}, {u.Unbounded, "without a limit"},
	} {
		if one.count > 0 {
			said = append(said, fmt.Sprintf("%d %s", one.count, one.words))
		}
	}
	return said
}

// hot is from how many writes on an object is named.
const hot = 10

// asAnyUser adds up the requests that the operator sent as itself and as another user: what they cost is the same.
func asAnyUser(uses []*lens.Use) (all []*lens.Use) {
	for _, u := range uses {
		i := slices.IndexFunc(all, func(other *lens.Use) bool {
			return other.Verb == u.Verb && useName(other) == useName(u) && other.Implied == "" && u.Implied == ""
		})
		if i < 0 {
			copied := *u
			all = append(all, &copied)
			continue
		}
		all[i].Count += u.Count
		all[i].Unbounded += u.Unbounded
		all[i].NoChange += u.NoChange
	}
	return all
}

// advise lists requests that are worth a closer look.
func advise(t lens.Totals) (lines []string) {
	var uncached, bypassing, unbounded, idle []string
	uses := asAnyUser(t.Uses)
	for _, u := range uses {
		watched := slices.ContainsFunc(uses, func(other *lens.Use) bool {
			return other.Verb == "watch" && other.Resource == u.Resource && other.Group == u.Group
		})
		switch {
		case u.Implied != "" || u.Path != "":
		case u.Verb == "get" && u.Subresource == "" && u.Count >= hot && u.Group != "coordination.k8s.io":
			reads := &uncached
			if watched {
				reads = &bypassing
			}
			*reads = append(*reads, fmt.Sprintf("%s (%d)", useName(u), u.Count))
		case u.Verb == "list" && u.Unbounded > 0 && (!watched || u.Unbounded >= hot): // an informer may have to list again
			unbounded = append(unbounded, fmt.Sprintf("%s (%d)", useName(u), u.Unbounded))
		case u.NoChange > 0:
			idle = append(idle, fmt.Sprintf("%s of %s (%d)", u.Verb, useName(u), u.NoChange))
		}
	}
	say := func(words string, what []string) {
		if len(what) > 0 {
			lines = append(lines, words+": "+strings.Join(what, ", "))
		}
	}
	say("Writes that changed nothing", idle)
	say("Reads that no cache answers", uncached)
	say("Reads that bypass a cache, although a watch could fill it", bypassing)
	say("Lists without a limit", unbounded)
	var hottest []string
	for _, one := range t.Hot {
		if one.Writes >= hot {
			hottest = append(hottest, fmt.Sprintf("%s (%d)", placeOf(lens.Resource{Group: one.Group, Resource: one.Resource, Namespace: one.Namespace, Name: one.Name}), one.Writes))
		}
	}
	say("Objects written most", hottest)
	return lines
}
