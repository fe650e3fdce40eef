// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
)

// expectLines compares texts, in order.
func expectLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestDifferencesBecomeObservations(t *testing.T) {
	const create, end = 0, 2
	for name, test := range map[string]struct {
		step  int
		found []compare.Difference
		want  []string
	}{
		"none": {create, nil, nil},
		"a missing object": {create, []compare.Difference{{Object: "Deployment default/victory", Want: "present", Got: "absent"}},
			[]string{"high end-state: A Deployment is missing at the end []: absent instead of present"}},
		"one too many": {create, []compare.Difference{{Object: "Job default/a", Want: "absent", Got: "present"}},
			[]string{"high end-state: The objects differ from the undisturbed run: Job []: present instead of absent"}},
		"what is left behind": {end, []compare.Difference{{Object: "Job default/a", Want: "absent", Got: "present"}},
			[]string{"high leftovers: A Job is left behind after everything was deleted []: present instead of absent"}},
		"a deletion that does not end": {end, []compare.Difference{{Object: "Frigate default/victory", Want: "absent", Got: "present"}},
			[]string{"high deletion: The deletion of a Frigate does not end []: present instead of absent"}},
		"an object of another owner": {create, []compare.Difference{{Object: "ConfigMap default/old", Want: "absent", Got: "gone, although it was there before"}},
			[]string{"high foreign: A ConfigMap that does not belong to the operator is gone []: gone, although it was there before instead of absent"}},
		"an object of another owner, at the end": {end, []compare.Difference{{Object: "ConfigMap default/old", Want: "absent", Got: "gone, although it was there before"}},
			[]string{"high foreign: A ConfigMap that does not belong to the operator is gone []: gone, although it was there before instead of absent"}},
		"a field": {create, []compare.Difference{{Object: "Deployment default/victory", Path: "spec.replicas", Want: "2", Got: "3"}},
			[]string{"high end-state: A Deployment differs from the undisturbed run [spec.replicas]: spec.replicas is 3 instead of spec.replicas is 2"}},
		"a parent and what was in it": {create, []compare.Difference{
			{Object: "B b", Path: "spec", Want: "1", Got: "2"}, {Object: "C a", Path: "spec", Want: "absent", Got: "{}"}, {Object: "C a", Path: "spec.b", Want: "1", Got: "absent"},
		}, []string{
			"high end-state: A B differs from the undisturbed run [spec]: spec is 2 instead of spec is 1",
			"high end-state: A C differs from the undisturbed run [spec.b]: spec.b is absent instead of spec.b is 1",
		}},
		"fields of one object are one observation": {create, []compare.Difference{
			{Object: "C a", Path: "spec.b", Want: "1", Got: "2"}, {Object: "C a", Path: "spec.c", Want: "1", Got: "2"}, {Object: "B b", Path: "spec.d", Want: "1", Got: "2"},
		}, []string{
			"high end-state: A C differs from the undisturbed run [spec.b spec.c]: spec.b is 2 instead of spec.b is 1",
			"high end-state: A B differs from the undisturbed run [spec.d]: spec.d is 2 instead of spec.d is 1",
		}},
		"a status": {create, []compare.Difference{{Object: "Frigate default/victory", Path: "status.ready", Want: "true", Got: "false"}},
			[]string{"medium status: The status of a Frigate differs from the undisturbed run [status.ready]: status.ready is false instead of status.ready is true"}},
		"a status that only follows from something else": {create, []compare.Difference{
			{Object: "Deployment default/victory", Want: "present", Got: "absent"}, {Object: "Frigate default/victory", Path: "status.ready", Want: "true", Got: "false"},
		}, []string{"high end-state: A Deployment is missing at the end []: absent instead of present"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range sailing().differences(test.step, test.found) {
				if o.Step != test.step || o.Object == "" {
					t.Errorf("got step %d and object %q", o.Step, o.Object)
				}
				got = append(got, fmt.Sprintf("%s %s: %s %v: %s instead of %s", o.Severity, o.Verdict, o.Title, o.Fields, o.Got, o.Want))
			}
			expectLines(t, got, test.want...)
		})
	}
}

// The step that deletes a custom resource may not be the last that deletes something.
func TestDeletionsBeforeTheEnd(t *testing.T) {
	c := sailing()
	c.o.Steps[1].Deletes = true
	wrong := c.differences(1, []compare.Difference{{Object: "Frigate default/victory", Want: "absent", Got: "present"}, {Object: "Job default/a", Want: "absent", Got: "present"}})
	var got []string
	for _, o := range wrong {
		got = append(got, o.Verdict+" "+o.Object)
	}
	expectLines(t, got, "deletion Frigate default/victory", "end-state Job default/a") // which may go later
}

func TestObservationsNameAFewFields(t *testing.T) {
	var found []compare.Difference
	for i := range 3 * mostFields {
		found = append(found, compare.Difference{Object: "A a", Path: fmt.Sprintf("spec.f%d", i)})
	}
	if wrong := sailing().differences(0, found); len(wrong) != 1 || len(wrong[0].Fields) != mostFields {
		t.Errorf("got %d observations with %v", len(wrong), wrong[0].Fields)
	}
}

func TestCountsThatDiffer(t *testing.T) {
	once := bounds{created: [2]int{1, 1}}
	for name, test := range map[string]struct {
		want, got bounds
		says      []string
	}{
		"the same":                  {once, once, nil},
		"less":                      {bounds{created: [2]int{1, 2}}, once, nil},
		"as often as seen":          {bounds{created: [2]int{1, 2}}, bounds{created: [2]int{2, 2}}, nil},
		"created once more":         {once, bounds{created: [2]int{2, 2}}, []string{"medium A Job is created that an undisturbed run does not create: created 2 times instead of created once"}},
		"created although never":    {bounds{}, once, []string{"medium A Job is created that an undisturbed run does not create: created once instead of created never"}},
		"deleted and created again": {once, bounds{created: [2]int{2, 2}, deleted: [2]int{1, 1}}, []string{"high A Job is deleted and created again: created 2 times, deleted once instead of created once, deleted never"}},
		"deleted only":              {once, bounds{created: [2]int{1, 1}, deleted: [2]int{1, 1}}, nil}, // it is missing at the end
	} {
		t.Run(name, func(t *testing.T) {
			c := sailing()
			var got []string
			for _, o := range c.countDifferences(1, map[string]bounds{"Job default/a": test.want}, map[string]bounds{"Job default/a": test.got}) {
				if o.Verdict != "counts" || o.Object != "Job default/a" || o.Step != 1 {
					t.Errorf("got %+v", o)
				}
				got = append(got, fmt.Sprintf("%s %s: %s instead of %s", o.Severity, o.Title, o.Got, o.Want))
			}
			expectLines(t, got, test.says...)
			c.mask.Objects["Job default/a"] = true
			if hidden := c.countDifferences(1, map[string]bounds{"Job default/a": test.want}, map[string]bounds{"Job default/a": test.got}); len(hidden) > 0 {
				t.Error("an object that is not always there is counted")
			}
		})
	}
}

func TestCountsOfUndisturbedRunsAreMerged(t *testing.T) {
	into := map[string]bounds{"both": {created: [2]int{1, 1}}, "first": {created: [2]int{1, 1}, deleted: [2]int{2, 2}}}
	mergeCounts(into, map[string]bounds{"both": {created: [2]int{3, 3}}, "second": {deleted: [2]int{1, 1}}})
	for name, want := range map[string]bounds{
		"both": {created: [2]int{1, 3}}, "first": {created: [2]int{0, 1}, deleted: [2]int{0, 2}}, "second": {deleted: [2]int{0, 1}},
	} {
		if into[name] != want {
			t.Errorf("%s: got %v, want %v", name, into[name], want)
		}
	}
}

func TestCausesDistinguishDefects(t *testing.T) {
	one := Observation{Family: "crash", Verdict: "end-state", Object: "Deployment default/a", Title: "T", Fields: []string{"spec.list[a].x", "spec.y"}, Got: "1", Step: 1}
	same := one
	same.Object, same.Fields, same.Got, same.Step = "Deployment other/b", []string{"spec.list[b].x"}, "2", 2
	if one.cause() != same.cause() {
		t.Errorf("%q and %q are two causes", one.cause(), same.cause())
	}
	for name, change := range map[string]func(*Observation){
		"family":  func(o *Observation) { o.Family = "lost" },
		"verdict": func(o *Observation) { o.Verdict = "counts" },
		"kind":    func(o *Observation) { o.Object = "Service default/a" },
		"title":   func(o *Observation) { o.Title = "U" },
		"field":   func(o *Observation) { o.Fields = []string{"spec.z"} },
	} {
		other := one
		if change(&other); other.cause() == one.cause() {
			t.Errorf("another %s is the same cause", name)
		}
	}
}

func TestSubjectsAreKnownByTheirWholeName(t *testing.T) {
	for object, want := range map[string]bool{
		"Frigate default/victory": true, "Frigate default/hms-victory": false, "Frigate other/victory": false, "Deployment default/victory": false,
	} {
		if got := sailing().isSubject(object); got != want {
			t.Errorf("%s: got %v, want %v", object, got, want)
		}
	}
}

// TestFieldsThatAreIgnored says that a field that is ignored does not hide others of the same object.
func TestFieldsThatAreIgnored(t *testing.T) {
	c := sailing()
	c.o.Ignores = func(o *Observation) string {
		if o.Family == "crash" && o.Verdict == "status" && o.Object == "Frigate default/victory" && slices.Equal(o.Fields, []string{"status.seen"}) {
			return "it is a heartbeat"
		}
		return ""
	}
	for about, test := range map[string]struct {
		family string
		d      compare.Difference
		want   bool
	}{
		"the field":      {"crash", compare.Difference{Object: "Frigate default/victory", Path: "status.seen"}, true},
		"another field":  {"crash", compare.Difference{Object: "Frigate default/victory", Path: "status.ready"}, false},
		"another family": {"lost", compare.Difference{Object: "Frigate default/victory", Path: "status.seen"}, false},
		"no status":      {"crash", compare.Difference{Object: "Frigate default/victory", Path: "spec.seen"}, false},
		"a whole object": {"crash", compare.Difference{Object: "Frigate default/victory", Want: "present", Got: "absent"}, false},
	} {
		if got := c.ignoresDifference(test.family, 0, test.d); got != test.want {
			t.Errorf("%s: ignored %v, want %v", about, got, test.want)
		}
	}
}

func TestSentencesAboutAKind(t *testing.T) {
	for kind, want := range map[string]string{"AppService": "An AppService", "Ingress": "An Ingress", "Pod": "A Pod", "User": "A User", "": "A "} {
		if got := aKind(kind); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// An operator whose cache lags behind deletes again what is being deleted. One that deletes what was created again does more than that.
func TestDeletionsThatAreRepeated(t *testing.T) {
	berth := Moment{Verb: "delete", Resource: "configmaps", Namespace: "default", Name: "berth"}
	var seen []seenMoment
	for id := range uint64(4) {
		m := berth
		m.Nth = int(id) + 1
		seen = append(seen, seenMoment{Moment: m, id: id})
	}
	seen = append(seen, seenMoment{Moment: Moment{Verb: "update", Resource: "configmaps", Namespace: "default", Name: "berth"}, id: 9})
	for name, test := range map[string]struct {
		uids map[uint64]string
		want int
	}{
		"one object":   {map[uint64]string{0: "a", 1: "a", 2: "a", 3: "a"}, 1},
		"two objects":  {map[uint64]string{0: "a", 1: "a", 2: "b", 3: "b"}, 2},
		"not known":    {nil, 4},
		"partly known": {map[uint64]string{0: "a", 1: "a"}, 3},
	} {
		if got := deletionsIn(seen, test.uids); len(got) != 1 || got[berth] != test.want {
			t.Errorf("%s: got %v, want %d", name, got, test.want)
		}
	}
}

// An operator may delete a collection that is empty, or all of which is being deleted already.
func TestCollectionsThatAreDeletedAgain(t *testing.T) {
	all := func(id uint64, items int, uids ...string) *lens.Event {
		return &lens.Event{Request: &lens.Request{ID: id, Verb: "deletecollection", Resource: lens.Resource{Resource: "ingresses"}, Status: 200, Items: items, Deleted: uids}}
	}
	empty := all(1, 0)
	empty.Request.Change = &lens.Change{None: true}
	_, repeated := writtenIn([]*lens.Event{empty, all(6, 0), all(2, 2, "a", "b"), all(3, 2, "a", "b"), all(4, 2, "a", "c"), all(5, 300, "a")})
	if want := map[uint64]bool{1: true, 2: false, 3: true, 4: false, 5: false, 6: false}; !maps.Equal(repeated, want) {
		t.Errorf("got %v, want %v", repeated, want)
	}
}

// One undisturbed run may delete something more often than another.
func TestMostDeleted(t *testing.T) {
	helper := Moment{Verb: "delete", Resource: "pods", Namespace: "default", Name: "helper", Nth: 1}
	again := helper
	again.Nth = 2
	whichever := helper
	whichever.Nth = 0
	for _, runs := range [][][]write{{{{Moment: helper}}, {{Moment: helper}, {Moment: again}}}, {{{Moment: helper}, {Moment: again}}, nil}} {
		if got := mostDeleted(runs...); len(got) != 1 || got[whichever] != 2 {
			t.Errorf("got %v for %v", got, runs)
		}
	}
}

// A finding about a deletion names the object as all others do, so that the scenario can ignore it, and the line that deletes it.
func TestDeletionsThatAreNotUndisturbed(t *testing.T) {
	berth := Moment{Verb: "delete", Group: "apps", Resource: "deployments", Namespace: "default", Name: "victory", Nth: 1}
	again := berth
	again.Nth = 2
	for about, test := range map[string]struct {
		undisturbed []write
		seen        []seenMoment
		title       string
		blamed      uint64
	}{
		"as undisturbed": {[]write{{Moment: berth}}, []seenMoment{{Moment: berth, id: 7}}, "", 0},
		"never":          {nil, []seenMoment{{Moment: berth, id: 7}}, "The operator deletes a Deployment that it does not delete in an undisturbed run", 7},
		"more often":     {[]write{{Moment: berth}}, []seenMoment{{Moment: berth, id: 7}, {Moment: again, id: 8}}, "The operator deletes a Deployment more often than in an undisturbed run", 8},
	} {
		c := sailing()
		r := &run{campaign: c, board: newSwitchboard(c.named)}
		r.board.seen, r.board.sources = test.seen, map[Moment][]string{berth: {"fleet.go:1"}, again: {"fleet.go:2"}}
		wrong := r.deletionsBut(1, mostDeleted(test.undisturbed))
		if test.title == "" {
			if len(wrong) > 0 {
				t.Errorf("%s: got %+v", about, wrong[0])
			}
			continue
		}
		if len(wrong) != 1 {
			t.Errorf("%s: got %d", about, len(wrong))
			continue
		}
		line := fmt.Sprintf("fleet.go:%d delete deployments victory", test.blamed-6)
		if o := wrong[0]; o.Title != test.title || o.Object != "Deployment default/victory" || !slices.Equal(o.Where, []string{line}) {
			t.Errorf("%s: got %q about %q at %q", about, o.Title, o.Object, o.Where)
		}
		for _, id := range []uint64{7, 8} {
			if got := r.isCulprit(request(lens.Request{ID: id})); got != (id == test.blamed) {
				t.Errorf("%s: request %d is blamed: %v", about, id, got)
			}
		}
	}
}
