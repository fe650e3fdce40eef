// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

func TestConditionsOfAnOutcome(t *testing.T) {
	for _, test := range []struct {
		name    string
		outcome error
		want    string
	}{
		{"ready", nil, "Ready=True Ready"},
		{"waiting", Waiting("RollingOut", "1 of 3"), "Ready=False RollingOut, Reconciling=True RollingOut"},
		{"waiting for time", WaitingFor(time.Second, "Settling", "a second"), "Ready=False Settling, Reconciling=True Settling"},
		{"stalled", Stalled("Quota", errors.New("exceeded")), "Ready=False Quota, Stalled=True Quota"},
		{"stalled and wrapped", fmt.Errorf("service: %w", Stalled("Quota", errors.New("exceeded"))), "Ready=False Quota, Stalled=True Quota"},
		{"failed", errors.New("boom"), "Ready=False Retrying, Reconciling=True Retrying"},
		{"a reason of a pod that is no reason", Stalled("OutOfephemeral-storage", errors.New("full")), "Ready=False OutOfephemeral_storage, Stalled=True OutOfephemeral_storage"},
		{"an endless message", errors.New(strings.Repeat("x", maxMessage+1)), "Ready=False Retrying, Reconciling=True Retrying"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// Whatever was there before must not show.
			for _, before := range []error{nil, Waiting("A", "a"), Stalled("B", errors.New("b"))} {
				var conditions []metav1.Condition
				setConditions(&conditions, 1, before)
				setConditions(&conditions, 2, test.outcome)
				if got := describeConditions(conditions); got != test.want {
					t.Errorf("after %v: got %s, want %s", before, got, test.want)
				}
				for _, condition := range conditions {
					if condition.ObservedGeneration != 2 || len(condition.Message) > maxMessage {
						t.Errorf("after %v: %+v", before, condition)
					}
				}
			}
		})
	}
}

// TestReasonsOfAnything must be accepted by the schema of a condition.
func TestReasonsOfAnything(t *testing.T) {
	for text, want := range map[string]string{
		"Ready": "Ready", "OutOfnvidia.com/gpu": "OutOfnvidia_com_gpu", "1st": "st", "a, b:": "a,_b", "": "Unknown", "…": "Unknown", "x…": "x_",
		strings.Repeat("x", 2000): strings.Repeat("x", 1024),
	} {
		got := ConditionReason(text)
		if got != want || !regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`).MatchString(got) {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}

func TestSuspendedIsUnknownAndNothingElse(t *testing.T) {
	var conditions []metav1.Condition
	setConditions(&conditions, 1, Stalled("Quota", errors.New("exceeded")))
	setSuspended(&conditions, 2)
	if got := describeConditions(conditions); got != "Ready=Unknown Suspended" {
		t.Error(got)
	}
}

func TestVerdicts(t *testing.T) {
	of := func(generation int64, err error) []metav1.Condition {
		var conditions []metav1.Condition
		setConditions(&conditions, generation, err)
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: "Available", Status: metav1.ConditionFalse, Reason: fmt.Sprint("R", generation)})
		return conditions
	}
	for _, test := range []struct {
		name string
		a, b []metav1.Condition
		same bool
	}{
		{"progress", of(1, Waiting("Starting", "0 of 3")), of(1, Waiting("RollingOut", "1 of 3")), true},
		{"done", of(1, Waiting("RollingOut", "1 of 3")), of(1, nil), false},
		{"another generation", of(1, nil), of(2, nil), false},
		{"stalled for another reason", of(1, Stalled("A", errors.New("a"))), of(1, Stalled("B", errors.New("a"))), false},
		{"stalled in other words", of(1, Stalled("A", errors.New("a"))), of(1, Stalled("A", errors.New("b"))), true},
		{"first", nil, of(1, nil), false},
	} {
		if got := sameVerdict(test.a, test.b); got != test.same {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}

func TestTheGravestOutcomeCounts(t *testing.T) {
	wait, stall, fail := Waiting("W", "w"), Stalled("S", errors.New("s")), errors.New("f")
	for _, test := range []struct {
		outcomes []error
		want     error
	}{
		{[]error{nil, nil}, nil},
		{[]error{nil, wait, nil}, wait},
		{[]error{stall, wait}, stall},
		{[]error{wait, fail, stall}, fail},
		{[]error{Hold(1), wait}, wait},
	} {
		ran := 0
		var phases []Phase[*int]
		for _, outcome := range test.outcomes {
			phases = append(phases, func(_ context.Context, n *int) error { *n++; return outcome })
		}
		if got := RunAll(t.Context(), &ran, phases...); !errors.Is(got, test.want) {
			t.Errorf("%v: got %v", test.outcomes, got)
		}
		if ran != len(test.outcomes) {
			t.Errorf("%v: only %d phases ran", test.outcomes, ran)
		}
	}
	both := RunAll(t.Context(), 0, func(context.Context, int) error { return fail }, func(context.Context, int) error { return errors.New("g") })
	if both == nil || both.Error() != "f\ng" {
		t.Errorf("two failures: %v", both)
	}
}

// Nothing else brings an object back while a child is contested.
func TestTheEarliestOutcomeComesBack(t *testing.T) {
	soon, late := Within(time.Second, Stalled("Soon", errors.New("s"))), Within(time.Minute, Stalled("Late", errors.New("l")))
	never, retried, wait := Stalled("Never", errors.New("n")), StalledRetrying("Retried", errors.New("r")), Within(time.Hour, Waiting("W", "w"))
	for _, test := range []struct {
		outcomes []error
		after    time.Duration
		retrying bool
	}{
		{[]error{soon, late}, time.Second, false},
		{[]error{late, soon}, time.Second, false},
		{[]error{never, soon}, time.Second, false},
		{[]error{wait, never}, time.Hour, false},
		{[]error{never, wait}, time.Hour, false},
		{[]error{soon, wait}, time.Second, false},
		{[]error{never, retried}, 0, true},
		{[]error{soon, retried}, time.Second, true},
		{[]error{wait, nil}, time.Hour, false},
	} {
		var phases []Phase[int]
		for _, outcome := range test.outcomes {
			phases = append(phases, func(context.Context, int) error { return outcome })
		}
		after, retrying := ComesBack(RunAll(t.Context(), 0, phases...))
		if after != test.after || retrying != test.retrying {
			t.Errorf("%v: comes back after %v, retrying: %v", test.outcomes, after, retrying)
		}
	}
}

func TestPhasesStopAtTheFirstOutcome(t *testing.T) {
	var ran []string
	phase := func(name string, err error) Phase[int] {
		return func(context.Context, int) error { ran = append(ran, name); return err }
	}
	err := Run(t.Context(), 0, phase("a", nil), phase("b", Waiting("W", "w")), phase("c", nil))
	if outcomeOf(err) != outcomeWaiting || strings.Join(ran, "") != "ab" {
		t.Errorf("%v %v", err, ran)
	}
}

func describeConditions(conditions []metav1.Condition) string {
	var parts []string
	for _, conditionType := range []string{sharedv1.ConditionReady, sharedv1.ConditionReconciling, sharedv1.ConditionStalled} {
		if c := meta.FindStatusCondition(conditions, conditionType); c != nil {
			parts = append(parts, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
		}
	}
	return strings.Join(parts, ", ")
}
