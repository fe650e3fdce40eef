// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/why"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func record(name string, at time.Duration, change func(*why.Record)) *why.Record {
	r := &why.Record{
		Controller: "ships", Object: why.Object{Kind: "Frigate", Namespace: "default", Name: name}, Start: noon.Add(at), Outcome: why.Succeeded,
		Causes: []why.Cause{{Type: why.Updated, Object: &why.Object{Kind: "Pod", Name: "p"}, By: []why.Writer{{Manager: "kubelet"}}}},
	}
	if change != nil {
		change(r)
	}
	return r
}

func looping(r *why.Record) {
	r.Findings = []why.Finding{{Type: why.NoOp}, {Type: why.Loop, Message: "has caused itself 5 times in a row, by writing status.seen of Frigate default/black"}}
}

func failing(r *why.Record) { r.Outcome, r.Error = why.Failed, "no such harbour" }

// add adds so many reconciles, one each interval, and returns when the last was.
func add(t *Tracker, name string, count int, interval time.Duration, change func(*why.Record)) time.Duration {
	var at time.Duration
	for i := range count {
		at = time.Duration(i) * interval
		t.Add(record(name, at, change))
	}
	return at
}

func sentences(found []Finding) []string {
	var result []string
	for _, f := range found {
		result = append(result, f.Sentence)
	}
	return result
}

func TestWhatIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		happen func(*Tracker) time.Duration
		after  time.Duration // until it is checked
		want   []string
	}{
		"nothing": {func(*Tracker) time.Duration { return 0 }, 0, nil},
		"a loop": {func(t *Tracker) time.Duration { return add(t, "black", 600, 50*time.Millisecond, looping) }, 0, []string{
			"Frigate black is in a loop: it has caused itself 5 times in a row, by writing status.seen of Frigate default/black. 600 reconciles in the last minute."}},
		"a loop that is over":      {func(t *Tracker) time.Duration { return add(t, "black", 20, 50*time.Millisecond, looping) }, 11 * time.Second, nil},
		"a slow loop between two":  {func(t *Tracker) time.Duration { return add(t, "black", 9, 8*time.Second, looping) }, 15 * time.Second, []string{"Frigate black is in a loop"}},
		"a slow loop that is over": {func(t *Tracker) time.Duration { return add(t, "black", 9, 8*time.Second, looping) }, 25 * time.Second, nil},
		"a failure or two":         {func(t *Tracker) time.Duration { return add(t, "black", 2, time.Second, failing) }, 0, nil},
		"failures":                 {func(t *Tracker) time.Duration { return add(t, "black", 5, time.Second, failing) }, time.Hour, []string{`Frigate black fails: the last 5 reconciles ended with "no such harbour".`}},
		"failures that have ended": {func(t *Tracker) time.Duration {
			add(t, "black", 5, time.Second, failing)
			return add(t, "black", 1, 0, nil)
		}, 0, nil},
		"often":                   {func(t *Tracker) time.Duration { return add(t, "black", 100, 100*time.Millisecond, nil) }, 0, []string{"Frigate black is reconciled very often: 100 reconciles in the last minute, mostly because of changed objects of kind Pod (by kubelet)."}},
		"not so often":            {func(t *Tracker) time.Duration { return add(t, "black", 100, 2*time.Second, nil) }, 0, nil},
		"often, but a minute ago": {func(t *Tracker) time.Duration { return add(t, "black", 100, 100*time.Millisecond, nil) }, time.Minute, nil},
		"the worst first": {func(t *Tracker) time.Duration {
			add(t, "slow", 5, time.Second, failing)
			add(t, "often", 80, 50*time.Millisecond, nil)
			return add(t, "black", 6, time.Second, looping)
		}, 0, []string{"Frigate black is in a loop", "Frigate slow fails", "Frigate often is reconciled"}},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := NewTracker()
			end := test.happen(tracker)
			got := sentences(tracker.At(noon.Add(end + test.after)))
			if len(got) != len(test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("got %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
}

func TestTheTrackerIsBounded(t *testing.T) {
	tracker := NewTracker()
	for i := range 3 * maxObjects {
		tracker.Add(record(fmt.Sprint("ship-", i), time.Duration(i)*time.Millisecond, nil))
	}
	if n := len(tracker.objects); n > maxObjects {
		t.Errorf("%d objects are remembered", n)
	}
	tracker.Reset()
	if n := len(tracker.objects); n != 0 {
		t.Errorf("%d objects are remembered after a reset", n)
	}
	var none *Tracker
	none.Add(record("x", 0, nil))
	if found := none.At(noon); found != nil {
		t.Errorf("nothing finds %v", found)
	}
}

// A terminal is told when something begins, when it has become much worse, and when it is over; not six hundred times.
func TestReporting(t *testing.T) {
	tracker := NewTracker()
	var said []string
	r := Reporter{Tracker: tracker, Say: func(s string) { said = append(said, s) }}
	var at time.Duration
	for i := range 600 {
		at = time.Duration(i) * 50 * time.Millisecond
		tracker.Add(record("black", at, looping))
		r.Report(noon.Add(at))
	}
	r.Report(noon.Add(at + 5*time.Second))
	r.Report(noon.Add(at + 11*time.Second))
	r.Report(noon.Add(at + 12*time.Second))
	if len(said) != 4 || slices.ContainsFunc(said[:3], func(s string) bool { return !strings.HasPrefix(s, "Frigate black is in a loop: ") }) ||
		said[3] != "Frigate black is no longer in a loop, after 600 reconciles." {
		t.Errorf("said\n%s", strings.Join(said, "\n"))
	}
}
