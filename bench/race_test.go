// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The ratios of the rounds are 7.5, 5 and 10.
func TestRacesAreCountedByTheirMedians(t *testing.T) {
	runs := func(seconds ...int) (all []raced) {
		for _, s := range seconds {
			all = append(all, raced{took: time.Duration(s) * time.Second, peak: uint64(s) * 1e6, resident: uint64(s) * 1e6})
		}
		return all
	}
	r := results{size: 7, racers: []racer{{name: "a"}, {name: "b"}}, runs: [][]raced{runs(30, 10, 20), runs(4, 2, 2)}}
	if a, b := r.of("a", tookOf), r.of("b", tookOf); a != 20 || b != 2 {
		t.Errorf("the medians are %v and %v", a, b)
	}
	var page strings.Builder
	writeRaces(func(format string, args ...any) { fmt.Fprintf(&page, format+"\n", args...) }, []results{r}, "b")
	for _, want := range []string{"| 7 | a | 3 | 20.0 s | 10.0 s | 30.0 s | 7.50 × |", "| 7 | b | 3 | 2.0 s | 2.0 s | 4.0 s | 1.00 × |"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s is missing in\n%s", want, page.String())
		}
	}
	columns := map[int]bool{}
	for line := range strings.Lines(page.String()) {
		columns[strings.Count(line, "|")] = true
	}
	if len(columns) != 1 {
		t.Errorf("the rows differ in length:\n%s", page.String())
	}
}

func TestRounds(t *testing.T) {
	for size, want := range map[int]int{100: 9, 400: 6, 500: 6, 600: 3, 1000: 3} {
		if got := rounds(3, size, 1000); got != want {
			t.Errorf("%d rounds with %d of 1000 applications, not %d", got, size, want)
		}
	}
}

func TestGoalsOfKro(t *testing.T) {
	racers := []racer{{name: floorRacer}, {name: fleetRacer}, {name: kroDefault}, {name: kroTuned}}
	one := func(seconds int, megabytes uint64) []raced {
		return []raced{{took: time.Duration(seconds) * time.Second, resident: megabytes * 1e6, peak: 1}}
	}
	goals := kroGoals([]results{{size: 200, racers: racers, runs: [][]raced{one(9, 0), one(10, 70), one(31, 60), one(14, 80)}}})
	var met []bool
	for _, g := range goals {
		met = append(met, g.met)
	}
	// kro's default takes 3.1 times as long (goal 3), tuned 1.4 times (goal 1.5), and one of them uses less memory.
	if want := []bool{true, false, false}; fmt.Sprint(met) != fmt.Sprint(want) {
		t.Errorf("met is %v, want %v: %+v", met, want, goals)
	}
}
