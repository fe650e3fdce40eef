// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/opdock/opdock/internal/lens"
)

const (
	nilMap    = "assignment to entry in nil map"
	logged    = `{"level":"error","ts":"2026-01-01T00:00:00Z","msg":"Observed a panic","controller":"frigate","panic":"` + nilMap + `","panicGoValue":"\"x\"","stacktrace":"goroutine 1"}`
	asAnError = `{"level":"error","msg":"Reconciler error","controller":"frigate","error":"panic: ` + nilMap + ` [recovered]"}`
)

func TestPanicsInALog(t *testing.T) {
	for about, test := range map[string]struct{ line, want string }{
		"JSON":                    {logged, nilMap},
		"for people":              {"2026-01-01T00:00:00Z\tERROR\tObserved a panic\t{\"controller\": \"frigate\", \"panic\": \"" + nilMap + "\", \"stacktrace\": \"goroutine 1\"}", nilMap},
		"klog":                    {`E0101 00:00:00.000000       1 panic.go:262] "Observed a panic" controller="frigate" panic="no \"guns\"" stacktrace=<`, `no "guns"`},
		"klog, in several lines":  {`E0101 00:00:00.000000       1 panic.go:262] "Observed a panic" panic=<`, "Observed a panic"},
		"client-go before 0.31":   {`E0101 00:00:00.000000       1 runtime.go:79] Observed a panic: "x" (runtime error: index out of range [3])`, `"x" (runtime error: index out of range [3])`},
		"controller-runtime":      {"INFO Observed a panic in reconciler: " + nilMap, nilMap},
		"the error":               {asAnError, nilMap},
		"a webhook":               {"2026/01/01 00:00:00 http: panic serving 127.0.0.1:40000: " + nilMap, nilMap},
		"the policy for panics":   {`{"msg":"starting","panic":"recover"}`, ""},
		"an error that names one": {`{"msg":"Reconciler error","error":"panic: button not found"}`, ""},
	} {
		if got, found := recoveredIn(test.line); got != test.want || found != (test.want != "") {
			t.Errorf("%s: got %q, %v; want %q", about, got, found, test.want)
		}
	}
}

// TestPanicsAreReportedOnce is about an operator that recovers from a panic, with marks and without.
func TestPanicsAreReportedOnce(t *testing.T) {
	marked := reconciled(lens.Reconcile{ID: 1, Panicked: true, Error: "panic: " + nilMap + " [recovered]"})
	for about, test := range map[string]struct {
		events []*lens.Event
		lines  []string
		exits  []string
		want   []string
	}{
		"in the log":              {nil, []string{"starting", logged, asAnError, logged}, nil, []string{"panic of " + nilMap}},
		"two of them":             {nil, []string{logged, "http: panic serving 127.0.0.1:40000: no guns"}, nil, []string{"panic of " + nilMap, "panic of no guns"}},
		"with marks":              {marked, []string{logged, asAnError}, nil, []string{"panic of panic: " + nilMap + " [recovered]"}},
		"with marks, and no text": {reconciled(lens.Reconcile{ID: 1, Panicked: true}), []string{logged}, nil, []string{"panic of "}},
		"it does not recover":     {nil, []string{logged}, []string{"exited with 2"}, []string{"exit of exited with 2"}},
		"none":                    {nil, []string{"starting"}, nil, nil},
	} {
		t.Run(about, func(t *testing.T) {
			r := &run{campaign: sailing(), activity: following(test.events...), exits: test.exits}
			for _, line := range test.lines {
				r.log.line(line)
			}
			var got []string
			for _, o := range r.healthOf(0, rested{}) {
				got = append(got, o.Verdict+" of "+o.Got)
			}
			expectLines(t, got, test.want...)
			if again := r.healthOf(0, rested{}); len(again) > 0 {
				t.Errorf("at the end of the next step: %+v", again[0])
			}
		})
	}
}

// A line of the log may come later than the mark.
func TestPanicsThatAreLoggedLate(t *testing.T) {
	r := &run{campaign: sailing(), activity: following(reconciled(lens.Reconcile{ID: 1, Panicked: true})...)}
	if got := r.healthOf(0, rested{}); len(got) != 1 {
		t.Fatalf("got %+v", got)
	}
	r.log.line(logged)
	if got := r.healthOf(1, rested{}); len(got) > 0 {
		t.Errorf("it is reported again: %+v", got[0])
	}
}

// The API server refuses a request if a webhook of the operator has panicked. That is a finding, not a run that broke down.
func TestPanicsOfWebhooks(t *testing.T) {
	const calling = "Internal error occurred: failed calling webhook "
	for about, test := range map[string]struct {
		err  error
		line string
		want []string
	}{
		"the answer shows it":   {errors.New("admission webhook \"ships.example.com\" denied the request: panic: " + nilMap + " [recovered]"), "", []string{nilMap}},
		"the log shows it":      {errors.New(calling + "\"ships.example.com\": EOF"), "http: panic serving 127.0.0.1:40000: " + nilMap, []string{nilMap}},
		"it does not answer":    {errors.New(calling + "\"ships.example.com\": EOF"), "", nil},
		"the error has no part": {errors.New("connection refused"), "http: panic serving 127.0.0.1:40000: " + nilMap, nil},
		"no error":              {nil, "", nil},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _, _ := liftable(t)
				r.log.line(test.line)
				wrong, err := r.orPanicked(t.Context(), 0, nil, test.err)
				var got []string
				for _, o := range wrong {
					got = append(got, o.Got)
				}
				expectLines(t, got, test.want...)
				if isLeft := err != nil; isLeft != (test.err != nil && test.want == nil) {
					t.Errorf("the error that is left is %v", err)
				}
			})
		})
	}
}
