// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/why"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading the golden file (run the test with -update to write it): %v", err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("differs from %s\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}

func TestPage(t *testing.T) {
	page, err := scene().Page()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "page.md", page)
}

func TestPageOfASavedResult(t *testing.T) {
	data, err := json.Marshal(scene())
	if err != nil {
		t.Fatal(err)
	}
	saved, err := ReadResult(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	page, err := saved.Page()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "page.md", page)
	for _, wrong := range []string{"", "[]", `{"rows": []}`, `{"rows": [{"title": "x", "naive": []}]}`, `{"runs": 1, "rows": [{"naive": [{}, {}, {}], "appService": {"seen": [{}]}}]}`} {
		if _, err := ReadResult(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q was accepted as a result", wrong)
		}
	}
}

func TestText(t *testing.T) {
	var text bytes.Buffer
	if err := scene().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "text.txt", text.Bytes())
}

func TestMeasuredIsAboutTheUsualRun(t *testing.T) {
	plain := scene().Rows[0].Plain()
	if plain.Events != (Spread{Median: 4, Least: 3, Most: 4}) || plain.Then != (Spread{Median: 3, Least: 3, Most: 3}) {
		t.Errorf("the events are %+v, and %+v then", plain.Events, plain.Then)
	}
	if plain.Reconciles.String() != "3" || plain.Events.String() != "4 (3–4)" {
		t.Errorf("they are shown as %s and %s", plain.Reconciles, plain.Events)
	}
	if len(plain.Trace.Events) != 4 || plain.Trace.Events[3].Reconcile != 2 {
		t.Errorf("the trace is %+v", plain.Trace.Events)
	}
}

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []int
		want   Spread
	}{
		{[]int{5}, Spread{5, 5, 5}},
		{[]int{5, 4}, Spread{4, 4, 5}},
		{[]int{6, 4, 5}, Spread{5, 4, 6}},
		{[]int{1, 9, 9, 9}, Spread{9, 1, 9}},
	} {
		if got := newSpread(test.values); got != test.want {
			t.Errorf("%v: got %+v, want %+v", test.values, got, test.want)
		}
	}
}

func TestWitnessNamesWriters(t *testing.T) {
	app := scene().Rows[0].AppService
	if got := app.Trace.Events[1].Writers(); got != "kube-controller-manager" {
		t.Errorf("it was changed by %q", got)
	}
	if got, want := app.Ignored(), "1 about its own writes, 2 about pods"; got != want {
		t.Errorf("ignored is %q, want %q", got, want)
	}
}

func TestFits(t *testing.T) {
	result := scene()
	// The notes have five and four for scale-3-1, and four for scale-3-4 with two containers only. Five is too many.
	if fit := result.Fits()[0]; fit.Rows != 3 || fit.Within != 2 || fit.Seen != 0 || fit.Off != 4 {
		t.Errorf("got %+v", fit)
	}
	other := &result.Rows[0].Naive[1]
	other.Possible, other.Then = Range{5, 9}, Spread{9, 5, 9}
	if fit := result.Fits()[1]; fit.Within != 3 || fit.Seen != 1 || fit.Off != 6 {
		t.Errorf("got %+v", fit)
	}
}

func TestPossible(t *testing.T) {
	later := func(cause why.Cause) why.Cause {
		cause.Seen = cause.Seen.Add(time.Second)
		return cause
	}
	manager := by("kube-controller-manager", "status")
	replicaSet := &why.Object{Kind: "ReplicaSet", Name: "web-1", UID: "r"}
	ready := updated(theDeployment, "", manager, change("status.readyReplicas", "1", "3"))
	missing := updated(theDeployment, "", manager, change("status.unavailableReplicas", "0", "2"))
	for name, test := range map[string]struct {
		causes []why.Cause
		want   Range
	}{
		"nothing":                            {nil, Range{0, 0}},
		"the change and its observation":     {[]why.Cause{scaled, seen}, Range{2, 2}},
		"two pods fewer, in two or one":      {[]why.Cause{scaled, seen, fewer}, Range{2, 4}},
		"not on that server":                 {[]why.Cause{scaled, seen, fewer, stopped}, Range{2, 4}},
		"too late to be folded":              {[]why.Cause{scaled, seen, later(fewer)}, Range{3, 4}},
		"one write of one number":            {[]why.Cause{missing}, Range{1, 1}},
		"ready one by one":                   {[]why.Cause{scaled, missing, later(ready)}, Range{3, 4}},
		"objects are not folded":             {[]why.Cause{seen, updated(replicaSet, "", manager, change("status.replicas", "1", "2"))}, Range{2, 2}},
		"writers are not folded":             {[]why.Cause{seen, updated(theDeployment, "", by("other", ""), change("status.replicas", "1", "2"))}, Range{2, 2}},
		"a status is not folded with a spec": {[]why.Cause{updated(theDeployment, "", manager, change("spec.replicas", "1", "2")), seen}, Range{2, 2}},
		"one for each event of other kinds":  {[]why.Cause{{Type: why.Created, Object: onePod}, {Type: why.Deleted, Object: onePod}}, Range{2, 2}},
	} {
		trace := newTrace([]*why.Record{record(nil, test.causes...)})
		if got := possible(trace.Events); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestChooseChanges(t *testing.T) {
	names := func(changes []Change) (names []string) {
		for _, c := range changes {
			names = append(names, c.Name)
		}
		return names
	}
	all, err := ChooseChanges(nil)
	if err != nil || !slices.Equal(names(all), ChangeNames()) {
		t.Errorf("all are %v, %v", names(all), err)
	}
	some, err := ChooseChanges([]string{"scale-4-0", "delete-1"})
	if err != nil || !slices.Equal(names(some), []string{"delete-1", "scale-4-0"}) {
		t.Errorf("some are %v, %v", names(some), err)
	}
	if _, err := ChooseChanges([]string{"delete-1", "delete-3"}); err == nil || err.Error() != `change "delete-3" does not exist` {
		t.Errorf("got %v", err)
	}
}

func TestCountsMatchChanges(t *testing.T) {
	noted := 0
	for containers, counts := range counted {
		for name := range counts {
			noted++
			if !slices.Contains(ChangeNames(), name) {
				t.Errorf("%s with %d containers is not a change", name, containers)
			}
		}
	}
	if noted != 19 {
		t.Errorf("%d counts were noted, want 19", noted)
	}
}

func TestMeanings(t *testing.T) {
	manager := by("kube-controller-manager", "status")
	for want, event := range map[string]why.Cause{
		"the change itself":              scaled,
		"its spec was changed":           updated(theDeployment, "", by("opdock-appservice", ""), change("spec.replicas", "1", "2")),
		"the new spec was observed":      seen,
		"2 pods fewer":                   fewer,
		"2 pods stopped":                 stopped,
		"1 pod stopping":                 updated(theDeployment, "", manager, change("status.terminatingReplicas", "0", "1")),
		"1 pod more":                     updated(theDeployment, "", manager, change("status.replicas", "2", "3"), change("status.terminatingReplicas", "1", "0")),
		"2 pods missing":                 updated(theDeployment, "", manager, change("status.unavailableReplicas", "", "2")),
		"1 pod ready":                    updated(theDeployment, "", manager, change("status.readyReplicas", "2", "3"), change("status.unavailableReplicas", "1", "0")),
		"1 pod no longer ready":          updated(theDeployment, "", manager, change("status.readyReplicas", "2", "1")),
		"1 pod available":                updated(theDeployment, "", manager, change("status.availableReplicas", "2", "3")),
		"2 pods more; 1 pod ready":       updated(theDeployment, "", manager, change("status.replicas", "1", "3"), change("status.readyReplicas", "1", "2")),
		"only managed fields changed":    updated(theDeployment, "", manager),
		"metadata.labels[a] was changed": updated(theDeployment, "", manager, change("metadata.labels[a]", "", `"b"`)),
		"its deletion started":           updated(onePod, "", nil, change("metadata.deletionTimestamp", "", `"t"`)),
		"it stopped and can be removed":  updated(onePod, "", nil, change("metadata.deletionTimestamp", `"t"`, `"u"`)),
		"it was scheduled":               updated(onePod, "", manager, change("spec.nodeName", "", `"node-0"`)),
		"its phase is Running":           updated(onePod, "", manager, change("status.phase", `"Pending"`, `"Running"`)),
		"it is ready":                    updated(onePod, "", manager, change("status.conditions[type=Ready].status", `"False"`, `"True"`)),
		"it is not ready":                updated(onePod, "", manager, change("status.conditions[type=Ready].status", `"True"`, `"False"`)),
		"its status was changed":         updated(onePod, "", manager, change("status.podIP", "", `"10.0.0.1"`)),
		"it was created":                 {Type: why.Created, Object: onePod},
		"it was deleted":                 {Type: why.Deleted, Object: onePod},
		"resynced":                       {Type: why.Resynced, Object: onePod},
		"the previous reconcile failed":  {Type: why.Retried},
		"the requeue delay of the previous reconcile has passed": {Type: why.Timer},
	} {
		trace := newTrace([]*why.Record{record(nil, event)})
		if got := trace.Events[0].Meaning(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFieldsLeaveOutWhatGoesWithAChange(t *testing.T) {
	event := updated(onePod, "", nil,
		change("status.conditions[type=Ready].status", `"False"`, `"True"`),
		change("status.conditions[type=Ready].lastTransitionTime", `"t"`, `"u"`),
		change("status.conditions[type=Initialized]", "", `{"type":"Initialized"}`),
		change("status.containerStatuses[name=a].ready", "false", "true"),
		change("status.containerStatuses[name=b].ready", "false", "true"),
		change("spec.nodeName", "", `"node-0"`))
	trace := newTrace([]*why.Record{record(nil, event)})
	want := "condition Ready False → True, condition Initialized – → {…}, containerStatuses[…].ready false → true (2 times), spec.nodeName – → node-0"
	if got := trace.Events[0].Fields(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
