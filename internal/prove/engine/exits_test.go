// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/prove/compare"
)

var (
	exited  = &dev.EndedError{How: "exited with status 1", Tail: []string{"starting", "panic: nil map"}}
	lacking = &dev.EndedError{How: "exited with status 1", Lacks: &dev.LackingError{}}
)

// TestOperatorsThatExitWhenTheyStart is about runs that begin with such a start, or with a late one.
func TestOperatorsThatExitWhenTheyStart(t *testing.T) {
	const got = "exited with status 1: panic: nil map"
	for about, test := range map[string]struct {
		step int
		err  error
		want string // what the operator is blamed for; empty if the run broke down
	}{
		"objects exist":         {1, fmt.Errorf("starting: %w", exited), got},
		"with another problem":  {1, errors.Join(exited, errors.New("a file cannot be removed")), got},
		"nothing exists yet":    {0, exited, ""},
		"the cluster is broken": {1, errors.New("the disk is full"), ""},
		"kinds are missing":     {1, lacking, ""},
	} {
		result := &outcome{}
		result.notBegun(&Plan{Family: "crash", Step: test.step}, test.err)
		blamed := ""
		for _, o := range result.wrong {
			if blamed += o.Got; o.Verdict != "exit" || o.Family != "crash" || o.Step != test.step-1 {
				t.Errorf("%s: got %+v", about, o)
			}
		}
		if blamed != test.want || (result.failed == nil) != (test.want != "") {
			t.Errorf("%s: it is blamed for %q, and the run failed with %v", about, blamed, result.failed)
		}
	}
	late := &run{campaign: sailing(), activity: newActivity()}
	if wrong, err := late.orDead(0, nil, exited); err != nil || len(wrong) != 1 || wrong[0].Got != got {
		t.Errorf("started late: got %v, %v", wrong, err)
	}
}

// TestWhereOperatorsExit is about restarts: what they show is one finding, and no run begins there.
func TestWhereOperatorsExit(t *testing.T) {
	exit := func() *restarted { return &restarted{wrong: []*Observation{exitOf(0, exited)}, ended: true} }
	lasted := func() *restarted {
		return &restarted{shape: compare.Shape{Objects: map[string]compare.Fields{"Pod default/a": {"spec.x": "2"}}}}
	}
	for about, test := range map[string]struct {
		restarts []*restarted
		found    int
		exits    bool
		masked   int
	}{
		"both times":    {[]*restarted{exit(), exit()}, 1, true, 0},
		"once":          {[]*restarted{exit(), lasted()}, 0, false, 1},
		"never":         {[]*restarted{lasted()}, 0, false, 1},
		"not confirmed": {[]*restarted{exit(), nil}, 1, true, 0},
		"broken down":   {[]*restarted{nil}, 0, false, 0},
	} {
		c := sailing()
		c.failing = map[string]string{}
		c.reference[0].shape = compare.Shape{Objects: map[string]compare.Fields{"Pod default/a": {"spec.x": "1"}}}
		done := 0
		wrong, all := confirmed(func() (*restarted, error) {
			one := test.restarts[done]
			if done++; one == nil {
				return nil, errors.New("the disk is full")
			}
			return one, nil
		})
		c.learnRestarts(1, all)
		if len(wrong) != test.found || c.mask.Size() != test.masked {
			t.Errorf("%s: %d findings, %d masked", about, len(wrong), c.mask.Size())
		}
		c.checkpoints = make([]string, len(c.o.Steps))
		var skipped []string
		for _, p := range []*Plan{{Family: "order", Variant: operatorLate}, {Family: "crash", Step: 1}} {
			if c.exitsBefore(p) {
				skipped = append(skipped, c.execute(t.Context(), p).skipped)
			}
		}
		var want []string
		if test.exits {
			want = []string{exitsAlready, exitsAlready}
		}
		if !slices.Equal(skipped, want) || c.exitsBefore(&Plan{Family: "crash"}) || c.exitsBefore(&Plan{Family: "order", Variant: operatorLate, Step: 1}) {
			t.Errorf("%s: skipped with %q", about, skipped)
		}
	}
}
